// server PORT REDIS-SOCKET BODY-FILE: answers a POST with the bytes of a file,
// once for each Idempotency-Key; a retry gets the answer that Redis has.
//
// The key is locked by SET NX before the work, and its answer set after it.
// Redis has appendfsync always, so each of the two is on disk when it says OK.
// A value is the request's hash, and after it the answer, if there is one.
package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
)

const (
	lockMs  = "60000"       // while it runs
	keptMs  = "31536000000" // a year, with its answer
	bodyMax = 1 << 20
)

var errNil = errors.New("nil")

// A connection to Redis, with one command under way.
type conn struct {
	c net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

var (
	redis string
	idle  = make(chan *conn, 1024)
)

func take() (*conn, error) {
	select {
	case c := <-idle:
		return c, nil
	default:
	}
	c, err := net.Dial("unix", redis)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c), bufio.NewWriter(c)}, nil
}

func give(c *conn) {
	select {
	case idle <- c:
	default:
		c.c.Close()
	}
}

// do sends a command and reads a simple string, an error, an integer or a bulk
// string.
func (c *conn) do(args ...string) (string, error) {
	c.w.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, arg := range args {
		c.w.WriteString("$" + strconv.Itoa(len(arg)) + "\r\n")
		c.w.WriteString(arg)
		c.w.WriteString("\r\n")
	}
	if err := c.w.Flush(); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil || len(line) < 3 {
		return "", io.ErrUnexpectedEOF
	}
	text := line[1 : len(line)-2]
	if line[0] == '-' {
		return "", errors.New(text)
	}
	if line[0] != '$' {
		return text, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	if n < 0 {
		return "", errNil
	}
	bytes := make([]byte, n+2)
	if _, err = io.ReadFull(c.r, bytes); err != nil {
		return "", err
	}
	return string(bytes[:n]), nil
}

func command(args ...string) (string, error) {
	c, err := take()
	if err != nil {
		return "", err
	}
	value, err := c.do(args...)
	if err != nil && err != errNil {
		c.c.Close()
		return "", err
	}
	give(c)
	return value, err
}

func respond(w http.ResponseWriter, body string, replayed bool) {
	w.Header().Set("Content-Type", "application/json")
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, body)
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: server PORT REDIS-SOCKET BODY-FILE")
	}
	redis = os.Args[2]
	bytes, err := os.ReadFile(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	answer := string(bytes)

	pay := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
		name := r.Header.Get("Idempotency-Key")
		if err != nil || name == "" || r.Method != "POST" {
			http.Error(w, "no key, or no body", 400)
			return
		}
		key := "once:" + r.URL.Path + ":" + name
		hash := sha256.Sum256(body)
		mark := string(hash[:])
		_, err = command("SET", key, mark, "NX", "PX", lockMs)
		if err == nil {
			_, err = command("SET", key, mark+answer, "XX", "PX", keptMs)
			if err != nil {
				http.Error(w, "not recorded", 500)
				return
			}
			respond(w, answer, false)
			return
		}
		stored := ""
		if err == errNil {
			stored, err = command("GET", key)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), 503)
		case len(stored) < len(mark) || stored[:len(mark)] != mark:
			http.Error(w, "another request", 422)
		case len(stored) == len(mark):
			http.Error(w, "in progress", 409)
		default:
			respond(w, stored[len(mark):], true)
		}
	}
	http.HandleFunc("/go/pay", pay)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
