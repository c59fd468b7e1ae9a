import { gzipSync } from 'node:zlib';
import { mutatedBytes } from './byte-mutations.js';
import { hostileJson } from './hostile-values.js';
import type { Random } from './random.js';
import { mutatedText } from './text-mutations.js';

/** A JSON text, or what is left of it, with its tokens or its bytes changed. */
function hostileDocument(sound: object, random: Random): Uint8Array {
  const text = JSON.stringify(sound);
  return random.chance(0.3)
    ? mutatedBytes(Buffer.from(text), random)
    : Buffer.from(mutatedText(text, random, hostileJson));
}

const promises = {
  formats: ['bf16', 'fp16'],
  dims: [64, 128],
  causal: true,
  window: false,
  softcap: true,
  features: ['mask', 'packed'],
  groupedHeads: true,
  emptyRows: false,
  specialValues: false,
  lse: true,
  blockKeys: 128,
  rescaleThreshold: 8,
  sizes: { queries: { min: 1, max: 300 } },
  laws: { determinism: 'bits', 'within-bound': 'bound' },
};

/** A file of promises for `check --promises`. */
export function hostilePromises(random: Random): Uint8Array {
  return hostileDocument(promises, random);
}

/** The metadata of a folder of npy files. */
export function hostileFolderMetadata(random: Random): Uint8Array {
  const notes = { scale: 0.25, causal: true, window: '3,-1', softcap: null, layout: 'bhsd' };
  return hostileDocument({ ...notes, 'format.q': 'bf16', meta: '{"scale":1}' }, random);
}

/** The line with which a live kernel answers request 1. */
export function hostileAnswer(random: Random): string {
  const sound = random.pick([
    ...[
      { id: 1, ok: true },
      { id: 1, ok: false, error: 'out of memory' },
    ],
    { id: 1, ok: false, error: 'no such path', unsupported: true },
  ]);
  if (random.chance(0.1)) return JSON.stringify(sound);
  return new TextDecoder().decode(hostileDocument(sound, random));
}

/** A file of a capture folder: its name and content. */
export type CaptureFile = readonly [name: string, content: Uint8Array];

const description = { gpu: 'H200', capability: 'sm_90', driver: '580', captured: '2026-01-01' };
const fingerprintSizes = [0, 1, 4, 32_767, 32_768, 32_769, 2 ** 20];
const pairSizes = [0, 1, 7, 8, 9, 800, 4096];
const tableSizes = [0, 1, 2, 131_071, 131_072, 131_073, 262_144, 3_000_000];

/** A folder of captures of ex2.approx.ftz.f32 and of tables, none of it of any silicon. */
export function hostileCapture(random: Random): readonly CaptureFile[] {
  const filled = (sizes: readonly number[]): Buffer =>
    Buffer.alloc(random.pick(sizes), random.below(256));
  const packed = (content: Buffer): Uint8Array =>
    random.chance(0.7) ? mutatedBytes(gzipSync(content), random) : gzipSync(content);
  const candidates: readonly (() => CaptureFile)[] = [
    () => ['capture.json', hostileDocument(description, random)],
    () => ['hash_ex2_approx_ftz_f32.bin', filled(fingerprintSizes)],
    () => ['hash_ex2_approx_ftz_f32.bin', Buffer.alloc(32_768, random.below(256))],
    () => ['pairs_ex2_approx_ftz_f32.bin', filled(pairSizes)],
    () => ['pairs_ex2_approx_ftz_f32_7.bin.gz', packed(filled(pairSizes))],
    () => ['half_tables.bin', filled(tableSizes)],
    () => ['half_tables.bin.gz', packed(filled(tableSizes))],
    () => [
      'widening_tables.bin.gz',
      packed(Buffer.alloc(random.pick([0, 1000, 80_000_000 * +random.chance(0.02)]))),
    ],
  ];
  return Array.from({ length: 1 + random.below(4) }, () => random.pick(candidates)());
}
