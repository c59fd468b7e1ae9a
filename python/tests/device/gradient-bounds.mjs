// Writes what the library judges a kernel's gradients by, element by element, for a test that compares the device with it:
//   node gradient-bounds.mjs <dist> <file.safetensors> <target.safetensors> [out] [features]
// Files of the plainest kind are read here: q, k, v, dout, dq, dk, dv [batch, heads, seqlen, dim], with `out` that too, and
// metadata. Of a problem with features the library reads Q, K, V and these, and the rest lies beside it as here.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readByLibrary } from './read-problem.mjs';

const [dist, path, target, ...words] = process.argv.slice(2);
const hasFeatures = words.includes('features');
const stored = words.filter((word) => word === 'out');
const { anyGradientPremises, formats, measureGradients, storageOf } = await import(
  pathToFileURL(`${dist}/src/index.js`).href
);

const bytes = readFileSync(hasFeatures ? join(dirname(path), 'outputs.safetensors') : path);
const headerLength = Number(bytes.readBigUInt64LE(0));
const header = JSON.parse(bytes.subarray(8, 8 + headerLength).toString());
const metadata = header.__metadata__ ?? {};
const kinds = {
  F32: ['fp32', Uint32Array],
  F16: ['fp16', Uint16Array],
  BF16: ['bf16', Uint16Array],
};

function tensorOf(name) {
  const { dtype, shape, data_offsets: offsets } = header[name];
  const [format, Patterns] = kinds[dtype];
  const own = Uint8Array.from(bytes.subarray(...offsets.map((at) => 8 + headerLength + at)));
  return { format, shape, data: storageOf(formats[format], new Patterns(own.buffer)) };
}

function readHere() {
  const [left, right] = (metadata.window ?? '').split(',').map(Number);
  return {
    ...Object.fromEntries(['q', 'k', 'v'].map((name) => [name, tensorOf(name)])),
    scale: Number(metadata.scale),
    causal: metadata.causal === 'true',
    window: metadata.window === undefined ? null : { left, right },
    softcap: null,
  };
}

const problem = hasFeatures ? await readByLibrary(dist, path) : readHere();
const names = ['dout', 'dq', 'dk', 'dv', ...stored];
const tensors = Object.fromEntries(names.map((name) => [name, tensorOf(name)]));
const { gradients } = measureGradients(problem, tensors.dout, {
  premises: anyGradientPremises(problem, tensors.dq.format),
  given: { out: tensors.out ?? null, lse: null },
});

const found = Object.fromEntries(
  Object.entries(gradients).flatMap(([name, { exact, bound }]) => [
    [`${name}.exact`, exact.values],
    [`${name}.radius`, exact.radius],
    ...['total', 'systematic', 'known', 'deviation'].map((of) => [`${name}.${of}`, bound[of]]),
  ]),
);
const arrays = Object.values(found).map((x) => Buffer.from(x.buffer, x.byteOffset, x.byteLength));
const ends = arrays.map((_, i) => arrays.slice(0, i + 1).reduce((sum, x) => sum + x.length, 0));
const entries = Object.entries(found).map(([name, values], i) => [
  name,
  { dtype: 'F64', shape: [values.length], data_offsets: [ends[i] - arrays[i].length, ends[i]] },
]);
const text = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(text.length));
writeFileSync(target, Buffer.concat([length, text, ...arrays]));
