import { described, safetensorsBytes } from '../io/safetensors-bytes.js';
import { mutatedBytes } from './byte-mutations.js';
import {
  hostileDtypes,
  hostileIntegers,
  hostileJson,
  hostileNumbers,
  hostileTexts,
} from './hostile-values.js';
import type { Random } from './random.js';
import { mutatedText } from './text-mutations.js';

/** The settings of a problem and of a saved case, as metadata has them. */
const metadata = {
  scale: '0.25',
  causal: 'true',
  window: '3,-1',
  softcap: '30',
  layout: 'bhsd',
  property: 'within-bound',
  choice: '0',
  seed: '1',
  meta: '{"scale":0.5}',
  'format.q': 'tf32',
};

/** A problem of 4 queries and 4 keys in one head of dimension 4, fp32, with an output. */
const header = {
  __metadata__: metadata,
  q: described('F32', [1, 1, 4, 4], 0, 64),
  k: described('F32', [1, 1, 4, 4], 64, 128),
  v: described('F32', [1, 1, 4, 4], 128, 192),
  out: described('F32', [1, 1, 4, 4], 192, 256),
  lse: described('F32', [1, 1, 4], 256, 272),
};

const data = Buffer.from(
  Float32Array.from({ length: 68 }, (_, index) => ((index * 7) % 13) / 4 - 1.5).buffer,
);

/** A sound file, from which the others are made. */
export const soundSafetensors = safetensorsBytes(header, data);

const values = [...hostileJson, ...hostileDtypes.map((dtype) => JSON.stringify(dtype))];

type Making = (random: Random) => Uint8Array;

/** Metadata that is JSON and UTF-8, but says something odd. */
const oddMetadata: Making = (random) => {
  const key = random.pick(Object.keys(metadata));
  const text = random.pick([
    ...hostileTexts.filter((text) => !/\p{Surrogate}/u.test(text)),
    ...hostileNumbers,
    ...[
      `${random.pick(hostileNumbers)},${random.pick(hostileNumbers)}`,
      '[1,1]',
      'bshd',
      'determinism',
    ],
    ...hostileJson.map((json) => `{"${random.pick(Object.keys(metadata))}":${json}}`),
  ]);
  return safetensorsBytes({ ...header, __metadata__: { ...metadata, [key]: text } }, data);
};

/** Tensors whose sizes fit the file and one another's offsets, but not the problem. */
const oddShapes: Making = (random) => {
  const dims = [0, 1, 2, 3, 4, 5, 64, 2 ** 20, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER];
  let offset = 0;
  const tensors = ['q', 'k', 'v'].map((name) => {
    const shape = Array.from({ length: random.pick([0, 1, 2, 3, 4, 4, 4, 5, 33]) }, () =>
      random.pick(dims),
    );
    if (random.chance(0.7)) shape[random.below(shape.length)] = 0;
    const elements = shape.reduce((product, size) => product * size, 1);
    const bytes = elements <= 2 ** 16 ? elements * 4 : 0;
    offset += bytes;
    return [name, described('F32', shape, offset - bytes, offset)] as const;
  });
  const layout = random.pick(['bhsd', 'bshd']);
  return safetensorsBytes(
    { __metadata__: { layout }, ...Object.fromEntries(tensors) },
    new Uint8Array(offset),
  );
};

/** Offsets that overlap, leave holes or run backwards. */
const oddOffsets: Making = (random) => {
  const some = () => random.pick([0, 8, 64, 63, 65, 128, 272, 273, 2 ** 31, 2 ** 53 - 1]);
  const name = random.pick(['q', 'k', 'v', 'out', 'lse']);
  const shape = random.chance(0.5) ? [1, 1, 4, 4] : [random.pick([0, 1, 16, 2 ** 32]), some()];
  return safetensorsBytes({ ...header, [name]: described('F32', shape, some(), some()) }, data);
};

/** Just beyond the file, and up to the longest header that there may be, which is more than the file has. */
const longLengths: readonly bigint[] = [
  ...[soundSafetensors.length - 8, soundSafetensors.length - 7, soundSafetensors.length].map(
    BigInt,
  ),
  ...[2n << 20n, 1n << 23n, 1n << 24n, 1n << 26n, 99_000_000n, 100_000_000n, 100_000_001n],
];

/** A header of a length that is not its own. */
const oddLength: Making = (random) =>
  safetensorsBytes(
    header,
    data,
    random.pick(random.chance(0.5) ? longLengths : hostileIntegers) & ((1n << 64n) - 1n),
  );

/** Very many tensors, or one very long name. */
const longHeader: Making = (random) => {
  const count = random.pick([1000, 5000]);
  const names = random.chance(0.5)
    ? Array.from({ length: count }, (_, index) => `t${index}`)
    : ['n'.repeat(count * 20)];
  const entries = names.map((name) => [name, described('F32', [0], 0, 0)]);
  return safetensorsBytes(Object.fromEntries(entries), new Uint8Array(random.below(2)));
};

const makings: readonly Making[] = [
  (random) => mutatedBytes(soundSafetensors, random),
  ...Array<Making>(3).fill((random) =>
    safetensorsBytes(Buffer.from(mutatedText(JSON.stringify(header), random, values)), data),
  ),
  ...[oddMetadata, oddMetadata, oddShapes, oddShapes, oddOffsets, oddLength, oddLength],
];

/** A safetensors file that is wrong, or odd, in one or a few places. */
export function hostileSafetensors(random: Random): Uint8Array {
  return random.chance(0.01) ? longHeader(random) : random.pick(makings)(random);
}
