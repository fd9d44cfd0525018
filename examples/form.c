/*
 * A form: GET prints it, POST adds a line to the file `orders` in its folder.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest body of this form. */
#define BODY_MAX 4096

static void
head(const char *status)
{
	printf("Status: %s\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
	       "<!DOCTYPE html>\n<html lang=\"en\"><title>Order</title>\n",
	    status);
}

static void
print_form(void)
{
	/* Not there without oncewrap: then the form works as it always did. */
	const char *key = getenv("ONCE_FORM_KEY");

	head("200 OK");
	/* Not to the page's own address, see form.conf. */
	printf("<form method=\"post\" action=\"?order\">\n");
	if (key != NULL)
		printf("<input type=\"hidden\" name=\"once_key\" "
		       "value=\"%s\">\n",
		    key);
	printf("<input name=\"item\" value=\"tea\">\n"
	       "<button>Order</button>\n</form>\n");
}

static int
hex(char c)
{
	const char *digits = "0123456789abcdef", *p;

	p = c != '\0' ? strchr(digits, c | 0x20) : NULL;
	return p != NULL ? (int)(p - digits) : -1;
}

/* Decodes the value of a form's field, up to '&', in place; control characters
 * become blanks. */
static void
decode(char *s)
{
	char *to = s;
	int c;

	for (; *s != '\0' && *s != '&'; s++) {
		c = (unsigned char)*s;
		if (c == '+')
			c = ' ';
		if (c == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			c = hex(s[1]) << 4 | hex(s[2]);
			s += 2;
		}
		*to++ = c < ' ' ? ' ' : (char)c;
	}
	*to = '\0';
}

/* The value of the field `item`, or NULL. */
static char *
find_item(char *body)
{
	char *field;

	for (field = body; field != NULL; field = strchr(field, '&')) {
		field += *field == '&';
		if (strncmp(field, "item=", 5) == 0) {
			decode(field + 5);
			return field + 5;
		}
	}
	return NULL;
}

static void
print_html(const char *s)
{
	for (; *s != '\0'; s++) {
		if (strchr("&<>\"", *s) != NULL)
			printf("&#%d;", *s);
		else
			putchar(*s);
	}
}

/* Adds a line to the orders; returns its number. */
static int
add_order(const char *item)
{
	const char *key = getenv("ONCE_KEY");
	FILE *f = fopen("orders", "a+");
	int c, number = 0;

	if (f == NULL)
		err(1, "orders");
	fprintf(f, "%s %s\n", key != NULL ? key : "-", item);
	rewind(f);
	while ((c = getc(f)) != EOF)
		number += c == '\n';
	if (fclose(f) != 0)
		err(1, "orders");
	return number;
}

int
main(void)
{
	const char *method = getenv("REQUEST_METHOD");
	char body[BODY_MAX + 1], *item;
	size_t n;

	if (method == NULL || strcmp(method, "POST") != 0) {
		print_form();
		return 0;
	}
	n = fread(body, 1, sizeof(body), stdin);
	if (n > BODY_MAX) {
		head("413 Content Too Large");
		printf("<p>The order is too long.\n");
		return 0;
	}
	body[n] = '\0';
	item = find_item(body);
	if (item == NULL || *item == '\0') {
		head("400 Bad Request");
		printf("<p>An order needs an item.\n");
		return 0;
	}
	/* The order is made before anything is printed. */
	const int number = add_order(item);
	head("200 OK");
	printf("<p>Your order of ");
	print_html(item);
	printf(" is number %d.\n", number);
	return 0;
}
