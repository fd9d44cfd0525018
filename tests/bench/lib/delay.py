"""A proxy before a server's socket, as a network that takes its time: each
piece arrives so much later, in both directions, and none waits for another."""
import asyncio
import os
import shutil
import tempfile
import threading

NAME = '.s.PGSQL.5432'


class Delay:
    """.folder has the socket."""

    def __init__(self, target, milliseconds):
        self.target = os.path.join(target, NAME)
        self.seconds = milliseconds / 1000
        self.folder = tempfile.mkdtemp(prefix='once-far-')
        os.chmod(self.folder, 0o755)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        ready = threading.Event()
        self.loop.call_soon(lambda: self.loop.create_task(self.listen(ready)))
        self.thread.start()
        ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        shutil.rmtree(self.folder)

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(
            asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    async def listen(self, ready):
        await asyncio.start_unix_server(
            self.accept, os.path.join(self.folder, NAME))
        ready.set()

    async def accept(self, reader, writer):
        far, there = await asyncio.open_unix_connection(self.target)
        await asyncio.gather(self.copy(reader, there),
                             self.copy(far, writer))

    async def copy(self, reader, writer):
        data = True
        while data:
            try:
                data = await reader.read(1 << 16)
            except ConnectionError:
                data = b''
            self.loop.call_later(self.seconds, writer.write if data
                                 else lambda _, w=writer: w.close(), data)
