/*
 * server.js PORT REDIS-SOCKET BODY-FILE: answers a POST with the bytes of a
 * file, once for each Idempotency-Key; a retry gets the answer that Redis has.
 */
'use strict';

const fs = require('fs');
const express = require('express');
const { Idempotency } = require('@node-idempotency/core');
const { RedisStorageAdapter } =
	require('@node-idempotency/storage-adapter-redis');

const [port, redis, file] = process.argv.slice(2);
const body = fs.readFileSync(file, 'utf8');

async function main() {
	const storage = new RedisStorageAdapter({ socket: { path: redis } });
	await storage.connect();
	const idempotency = new Idempotency(storage, {
		cacheTTLMS: 365 * 24 * 3600 * 1000,
		enforceIdempotency: true,
	});
	const app = express();
	app.disable('x-powered-by');
	app.disable('etag');
	app.use(express.json());
	app.post('/express/pay', async (req, res) => {
		const request = {
			method: req.method, path: req.path,
			headers: req.headers, body: req.body,
		};
		let stored;
		try {
			stored = await idempotency.onRequest(request);
		} catch (error) {
			res.status(409).json({ error: error.message });
			return;
		}
		if (stored !== undefined) {
			res.status(stored.additional.status);
			res.set('Content-Type', 'application/json');
			res.set('Idempotent-Replayed', 'true');
			res.send(stored.body);
			return;
		}
		await idempotency.onResponse(request,
			{ body, additional: { status: 201 } });
		res.status(201);
		res.set('Content-Type', 'application/json');
		res.send(body);
	});
	app.listen(Number(port), '127.0.0.1');
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
