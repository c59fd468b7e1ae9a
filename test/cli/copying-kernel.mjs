// A live kernel that answers every problem with the bytes of one file.
import { copyFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , path] = process.argv;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, output } = JSON.parse(line);
  copyFileSync(path, output);
  console.log(JSON.stringify({ id, ok: true }));
}
