// Writes what the library judges a kernel's outputs by, element by element, for a test that compares the device with it:
//   node element-bounds.mjs <dist> <file.safetensors> <target.safetensors> [features]
// Files of the plainest kind are read here: q, k, v, out [batch, heads, seqlen, dim], lse perhaps, and metadata. Of a
// problem with features the library reads all but the outputs, which lie beside it as [batch, heads, seqlen, dim].
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readByLibrary } from './read-problem.mjs';

const [dist, path, target, features] = process.argv.slice(2);
const { auditOutputs, formats, storageOf } = await import(
  pathToFileURL(`${dist}/src/index.js`).href
);

const bytes = readFileSync(
  features === undefined ? path : join(dirname(path), 'outputs.safetensors'),
);
const headerLength = Number(bytes.readBigUInt64LE(0));
const header = JSON.parse(bytes.subarray(8, 8 + headerLength).toString());
const metadata = header.__metadata__ ?? {};

const kinds = {
  F32: ['fp32', Uint32Array],
  F16: ['fp16', Uint16Array],
  BF16: ['bf16', Uint16Array],
  F8_E4M3: ['e4m3', Uint8Array],
  F8_E5M2: ['e5m2', Uint8Array],
};

function tensorOf(name) {
  const { dtype, shape, data_offsets: offsets } = header[name];
  const [format, Patterns] = kinds[dtype];
  const own = Uint8Array.from(bytes.subarray(...offsets.map((at) => 8 + headerLength + at)));
  return { format, shape, data: storageOf(formats[format], new Patterns(own.buffer)) };
}

function readHere() {
  const [left, right] = (metadata.window ?? '').split(',').map(Number);
  const [q, k, v] = ['q', 'k', 'v'].map(tensorOf);
  return {
    q,
    k,
    v,
    scale: Number(metadata.scale),
    causal: metadata.causal === 'true',
    window: metadata.window === undefined ? null : { left, right },
    softcap: metadata.softcap === undefined ? null : Number(metadata.softcap),
  };
}

const problem = features === undefined ? readHere() : await readByLibrary(dist, path);
const outputs = { out: tensorOf('out'), lse: header.lse === undefined ? null : tensorOf('lse') };

const seen = [];
const options = { onElements: (elements) => seen.push(elements), diagnose: false };
const { verdict } = auditOutputs(problem, outputs, options);
const [{ reference, bounds }] = seen;

const { out, lse } = bounds.quantities;
const found = {
  'out.exact': reference.quantities.out.values,
  'out.radius': reference.quantities.out.radius,
  'lse.exact': reference.quantities.lse.values,
  'lse.total': lse.total,
  'out.total': out.total,
  'out.systematic': out.systematic,
  'out.known': out.known,
  'out.deviation': out.deviation,
  unit: bounds.unit,
};
const arrays = Object.values(found).map((x) => Buffer.from(x.buffer, x.byteOffset, x.byteLength));
const ends = arrays.map((_, i) => arrays.slice(0, i + 1).reduce((sum, x) => sum + x.length, 0));
const entries = Object.entries(found).map(([name, values], i) => [
  name,
  {
    dtype: values instanceof Int32Array ? 'I32' : 'F64',
    shape: [values.length],
    data_offsets: [ends[i] - arrays[i].length, ends[i]],
  },
]);
const __metadata__ = { pass: String(verdict.pass) };
const text = Buffer.from(JSON.stringify({ ...Object.fromEntries(entries), __metadata__ }));
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(text.length));
writeFileSync(target, Buffer.concat([length, text, ...arrays]));
