/**
 * A kernel behind the process protocol that gives Q, in fp32, each row by itself: as good as attention where rows are
 * compared with themselves. The arguments say from which number on all bits are others: `batch` 13 sequences, `neighbour`
 * 77 keys of the last of two sequences, `splits` 3, `run` 3 of the process; `none` never, and `crash` ends the process.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , fault = 'none', text = 'Infinity'] = process.argv;
const first = Number(text);

function readTensors(path) {
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerBytes).toString());
  const read = ([name, { dtype, shape, data_offsets: offsets }]) => {
    const [begin, end] = offsets.map((offset) => 8 + headerBytes + offset);
    const values = [];
    if (dtype === 'BF16')
      for (let at = begin; at < end; at += 2) values.push(file.readUInt16LE(at) << 16);
    if (dtype === 'I32') for (let at = begin; at < end; at += 4) values.push(file.readInt32LE(at));
    return [name, { shape, values }];
  };
  return Object.fromEntries(
    Object.entries(header)
      .filter(([name]) => name !== '__metadata__')
      .map(read),
  );
}

function writeOutput(path, shape, bits) {
  const content = Buffer.from(Int32Array.from(bits).buffer);
  const header = { out: { dtype: 'F32', shape, data_offsets: [0, content.length] } };
  const words = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(words.length));
  writeFileSync(path, Buffer.concat([length, words, content]));
}

async function serve() {
  let runs = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    if (fault === 'crash') process.exit(3);
    runs++;
    const { q, seqused_k: used } = readTensors(request.problem);
    const sequences = used?.values.length ?? q.shape[0];
    const number = {
      none: 0,
      batch: sequences,
      neighbour: sequences === 2 ? (used?.values.at(-1) ?? 0) : 0,
      splits: request.splits ?? 0,
      run: runs,
    }[fault];
    const change = number >= first ? 1 : 0;
    writeOutput(
      request.output,
      q.shape,
      q.values.map((bits) => bits ^ change),
    );
    process.stdout.write(`${JSON.stringify({ id: request.id, ok: true })}\n`);
  }
}

await serve();
