import { npyBytes, npyDict } from '../io/npy-bytes.js';
import { numpyFiles } from '../io/reference-files.js';
import { zipBytes, type ZipPart } from '../io/zip-bytes.js';
import { mutatedBytes, overwriteInteger } from './byte-mutations.js';
import { hostileNpy, soundNpy } from './hostile-npy.js';
import { hostileIntegers, hostileTexts } from './hostile-values.js';
import type { Random } from './random.js';

/** The records of a zip archive (APPNOTE.TXT 6.3): signature, and [offset, width] of each field. */
const records: readonly (readonly [
  signature: number,
  fields: readonly (readonly [number, number])[],
])[] = [
  [
    0x04034b50,
    [
      [4, 2],
      [6, 2],
      [8, 2],
      [14, 4],
      [18, 4],
      [22, 4],
      [26, 2],
      [28, 2],
    ],
  ],
  [
    0x02014b50,
    [
      [4, 2],
      [6, 2],
      [8, 2],
      [10, 2],
      [16, 4],
      [20, 4],
      [24, 4],
      [28, 2],
      [30, 2],
      [32, 2],
      [34, 2],
      [42, 4],
    ],
  ],
  [
    0x06054b50,
    [
      [4, 2],
      [6, 2],
      [8, 2],
      [10, 2],
      [12, 4],
      [16, 4],
      [20, 2],
    ],
  ],
  [
    0x06064b50,
    [
      [4, 8],
      [12, 2],
      [16, 4],
      [20, 4],
      [24, 8],
      [32, 8],
      [40, 8],
      [48, 8],
    ],
  ],
  [
    0x07064b50,
    [
      [4, 4],
      [8, 8],
      [16, 4],
    ],
  ],
];

/** The archive with a zip64 end record and locator before its end, which then refers to them. */
function withZip64End(zip: Uint8Array): Buffer {
  const bytes = Buffer.from(zip);
  const end = bytes.length - 22;
  const record = Buffer.alloc(56);
  record.writeUInt32LE(0x06064b50, 0);
  record.writeBigUInt64LE(44n, 4);
  record.writeUInt16LE(45, 12);
  record.writeUInt16LE(45, 14);
  record.writeBigUInt64LE(BigInt(bytes.readUInt16LE(end + 8)), 24);
  record.writeBigUInt64LE(BigInt(bytes.readUInt16LE(end + 10)), 32);
  record.writeBigUInt64LE(BigInt(bytes.readUInt32LE(end + 12)), 40);
  record.writeBigUInt64LE(BigInt(bytes.readUInt32LE(end + 16)), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(end), 8);
  locator.writeUInt32LE(1, 16);
  bytes.fill(0xff, end + 8, end + 20);
  return Buffer.concat([bytes.subarray(0, end), record, locator, bytes.subarray(end)]);
}

function problemParts(deflate: boolean): ZipPart[] {
  return ['q', 'k', 'v'].map((name) => ({ name: `${name}.npy`, content: soundNpy, deflate }));
}

/** A million zeros in a thousand bytes. */
const zeros = npyBytes(npyDict("'<f4'", '(1, 500, 500)'), new Uint8Array(1_000_000));

/** Sound archives: by numpy, by hand, with and without zip64, stored and deflated. */
export const soundArchives: readonly Uint8Array[] = [
  ...[numpyFiles.stored, numpyFiles.deflated],
  ...[zipBytes(problemParts(false)), zipBytes(problemParts(true))],
  ...[withZip64End(zipBytes(problemParts(false))), withZip64End(zipBytes(problemParts(true)))],
  zipBytes([{ name: 'q.npy', content: zeros, deflate: true }]),
];

/** Where in the archive records of a kind begin. */
function recordsIn(bytes: Buffer): (readonly [start: number, fields: (typeof records)[0][1]])[] {
  return records.flatMap(([signature, fields]) => {
    const mark = Buffer.alloc(4);
    mark.writeUInt32LE(signature);
    const starts: number[] = [];
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 4)) starts.push(at);
    return starts.map((start) => [start, fields] as const);
  });
}

type Making = (random: Random) => Uint8Array;

const makings: readonly Making[] = [
  (random) => mutatedBytes(random.pick(soundArchives), random),
  // One to three fields of the records changed.
  ...Array<Making>(3).fill((random) => {
    const bytes = Buffer.from(random.pick(soundArchives));
    const found = recordsIn(bytes);
    for (let change = random.below(3); change >= 0; change--) {
      const [start, fields] = random.pick(found);
      const [offset, width] = random.pick(fields);
      overwriteInteger(bytes, start + offset, width, random.pick(hostileIntegers));
    }
    return bytes;
  }),
  // Arrays that are hostile themselves, under names that may be, with a right or a wrong checksum.
  (random) =>
    zipBytes(
      Array.from({ length: 1 + random.below(3) }, () => ({
        name: random.chance(0.7)
          ? random.pick(['q.npy', 'k.npy', 'v.npy'])
          : `${random.pick(hostileTexts).slice(0, 200)}.npy`,
        content: hostileNpy(random),
        deflate: random.chance(0.5),
        ...(random.chance(0.2) ? { declaredSize: random.below(4096) } : {}),
        ...(random.chance(0.1) ? { crc: 0xdeadbeef } : {}),
      })),
    ),
  // Every member is the first one's bytes, which inflate a thousandfold.
  (random) =>
    zipBytes(
      Array.from({ length: 20 }, (_, index) => ({
        name: `${index}.npy`,
        localName: '0.npy',
        content: index === 0 ? zeros : new Uint8Array(0),
        deflate: true,
        offset: 0,
        declaredSize: random.pick([zeros.length, 2 ** 32 - 2, 0]),
      })),
    ),
];

/** An npz archive that is wrong, or odd, in one or a few places. */
export function hostileZip(random: Random): Uint8Array {
  return random.pick(makings)(random);
}
