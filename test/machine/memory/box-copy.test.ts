import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  byteStoreOf,
  checkBox,
  createByteStore,
  createSharedMemory,
  createTensorMap,
  gatherOperand,
  loadBox,
  storeBox,
  swizzles,
  touchedByBox,
} from '../../../src/machine/memory/index.js';
import type {
  SwizzleMode,
  TensorMap,
  TensorMapOptions,
} from '../../../src/machine/memory/index.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { swizzleBitwise } from './canonical-layout.js';
import { firstDifference } from './first-difference.js';

const modes = Object.keys(swizzles) as SwizzleMode[];

function randomBytes(length: number, seed: number): Uint8Array<ArrayBuffer> {
  const word = wordSource(seed);
  return new Uint8Array(length).map(() => word());
}

/** Maps of tensors of one to four dimensions, with boxes that fit the swizzling. */
const maps: fc.Arbitrary<TensorMap> = fc
  .record({
    swizzle: fc.constantFrom(...modes),
    elementBytes: fc.constantFrom(1 as const, 2 as const, 4 as const),
    inner: fc.integer({ min: 1, max: 80 }),
    outer: fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 3 }),
    outerBox: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 3 }),
    plainRow: fc.integer({ min: 1, max: 4 }),
    gap: fc.nat(2),
    steps: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 4, maxLength: 4 }),
    seed: fc.nat(),
  })
  .map(({ swizzle, elementBytes, inner, outer, outerBox, plainRow, gap, steps, seed }) => {
    const rowBytes = swizzle === 'none' ? 16 * plainRow : swizzles[swizzle].spanBytes;
    const strides: number[] = [];
    let size = 16 * (Math.ceil((inner * elementBytes) / 16) + gap);
    for (const dim of outer) {
      strides.push(size);
      size *= dim;
    }
    return createTensorMap({
      name: 'X',
      place: { store: byteStoreOf(randomBytes(size, seed)), offset: 0 },
      elementBytes,
      strides,
      swizzle,
      dims: [inner, ...outer],
      box: [rowBytes / elementBytes, ...outerBox.slice(0, outer.length)],
      elementStrides: steps.slice(0, outer.length + 1),
    });
  });

/** A map, coordinates around its tensor, and an address. */
const copies = maps.chain((map) =>
  fc.record({
    map: fc.constant(map),
    coordinates: fc.tuple(...map.dims.map((dim) => fc.integer({ min: -5, max: dim + 3 }))),
    address: fc.nat(30).map((unit) => 128 * unit),
  }),
);

/** Calls `visit` for each element of a box: its byte in shared memory, and in the tensor or null. */
function forEachElement(
  { dims, strides, box, elementStrides = [], elementBytes, swizzle }: TensorMap,
  coordinates: readonly number[],
  address: number,
  visit: (inShared: number, inTensor: number | null) => void,
): void {
  // Of the innermost dimension every element is copied.
  const steps = box.map((_, i) => (i === 0 ? 1 : elementStrides[i]));
  const counts = box.map((size, i) => Math.floor((size + steps[i] - 1) / steps[i]));
  const elements = counts.reduce((product, size) => product * size, 1);
  for (let element = 0; element < elements; element++) {
    let rest = element;
    let [isInside, inTensor] = [true, 0];
    counts.forEach((size, i) => {
      const coordinate = coordinates[i] + (rest % size) * steps[i];
      rest = Math.floor(rest / size);
      isInside = isInside && coordinate >= 0 && coordinate < dims[i];
      inTensor += coordinate * (i === 0 ? elementBytes : strides[i - 1]);
    });
    const inShared = swizzleBitwise(swizzle, address + element * elementBytes);
    visit(inShared, isInside ? inTensor : null);
  }
}

describe('copies of boxes', () => {
  it('load each element of the box to its place, zeros from outside, nothing else', () => {
    fc.assert(
      fc.property(copies, ({ map, coordinates, address }) => {
        const shared = createSharedMemory(16384);
        shared.store.bytes.fill(0xaa);
        const expected = shared.store.bytes.slice();
        forEachElement(map, coordinates, address, (to, from) => {
          for (let i = 0; i < map.elementBytes; i++)
            expected[to + i] = from === null ? 0 : map.place.store.bytes[from + i];
        });
        expect(loadBox(map, coordinates, shared, address)).toBe(map.boxBytes);
        expect(firstDifference(shared.store.bytes, expected)).toBe(null);
      }),
    );
  });

  it('store each element that lies in the tensor, nothing else', () => {
    fc.assert(
      fc.property(copies, ({ map, coordinates, address }) => {
        const shared = createSharedMemory(16384);
        shared.store.bytes.set(randomBytes(16384, 3));
        const expected = map.place.store.bytes.slice();
        forEachElement(map, coordinates, address, (from, to) => {
          if (to !== null)
            for (let i = 0; i < map.elementBytes; i++)
              expected[to + i] = shared.store.bytes[from + i];
        });
        storeBox(map, coordinates, shared, address);
        expect(firstDifference(map.place.store.bytes, expected)).toBe(null);
      }),
    );
  });

  it('touch the range of shared memory that they say, all of it', () => {
    fc.assert(
      fc.property(copies, ({ map, coordinates, address }) => {
        const { firstWord, words } = touchedByBox(map, address);
        const touched = new Set<number>();
        forEachElement(map, coordinates, address, (byte) => touched.add(Math.floor(byte / 4)));
        expect(touched.size).toBe(words);
        expect(Math.min(...touched)).toBe(firstWord);
        expect(Math.max(...touched)).toBe(firstWord + words - 1);
      }),
    );
  });

  it.each(
    modes.flatMap((swizzle) =>
      ([1, 2] as const).flatMap((elementBytes) =>
        (['k', 'mn'] as const).map((major) => ({ swizzle, elementBytes, major })),
      ),
    ),
  )('load what tcgen05.mma reads back: $swizzle, $elementBytes bytes, $major major', (c) => {
    const { swizzle, elementBytes, major } = c;
    const { spanBytes } = swizzles[swizzle];
    // The matrix [128 rows][32 bytes of k], or its transpose, in boxes of one span by all lines.
    const k = 32 / elementBytes;
    const [inner, lines] = major === 'k' ? [Math.max(k, spanBytes / elementBytes), 128] : [128, k];
    const matrix = randomBytes(inner * lines * elementBytes, 9);
    const map = createTensorMap({
      name: 'A',
      place: { store: byteStoreOf(matrix), offset: 0 },
      elementBytes,
      dims: [inner, lines],
      swizzle,
      strides: [inner * elementBytes],
      box: [spanBytes / elementBytes, lines],
    });
    const shared = createSharedMemory();
    const boxes = (inner * elementBytes) / spanBytes;
    for (let box = 0; box < boxes; box++)
      loadBox(map, [(box * spanBytes) / elementBytes, 0], shared, 1024 + box * map.boxBytes);
    const [across, along] = [map.boxBytes, 8 * spanBytes];
    const isSwappedPair = major === 'mn' && swizzle === 'none';
    const descriptor = {
      address: 1024,
      swizzle,
      major,
      leadingByteOffset: isSwappedPair ? along : across,
      strideByteOffset: isSwappedPair ? across : along,
    };
    const target = new { 1: Uint8Array, 2: Uint16Array }[elementBytes](128 * k);
    gatherOperand(shared, descriptor, { rows: 128, k, bytesPerElement: elementBytes }, target);
    const source = new { 1: Uint8Array, 2: Uint16Array }[elementBytes](matrix.buffer);
    const expected = target.map((_, i) => {
      const [row, column] = [Math.floor(i / k), i % k];
      return major === 'k' ? source[row * inner + column] : source[column * inner + row];
    });
    expect(firstDifference(target, expected)).toBe(null);
  });

  it('refuse misplaced boxes', () => {
    const place = { store: createByteStore(64 * 128), offset: 0 };
    const options = { name: 'X', place, elementBytes: 2, dims: [64, 64], strides: [128] } as const;
    const map = createTensorMap({ ...options, box: [64, 8], swizzle: '128B' });
    const shared = createSharedMemory();
    expect(checkBox(map, [0, 0], shared, 64)?.kind).toBe('misaligned');
    expect(checkBox(map, [0], shared, 0)?.kind).toBe('instruction-shape');
    expect(checkBox(map, [0, 0], shared, shared.limitBytes - 1024)).toBe(null);
    expect(checkBox(map, [0, 0], shared, shared.limitBytes - 896)?.kind).toBe('shared-overflow');
    expect(() => loadBox(map, [0, 0], shared, 64)).toThrow('a multiple of 128 is due');
    expect(() => storeBox(map, [0, 0], shared, shared.limitBytes)).toThrow('which has 232448');
  });
});

describe('tensor maps', () => {
  const good: TensorMapOptions = {
    name: 'Q',
    place: { store: createByteStore(32768), offset: 0 },
    elementBytes: 2,
    dims: [128, 128],
    strides: [256],
    box: [64, 128],
    swizzle: '128B',
  };

  it('count the whole box', () => {
    expect(createTensorMap(good)).toMatchObject({ rowBytes: 128, boxRows: 128, boxBytes: 16384 });
  });

  it.each<[string, Partial<TensorMapOptions>, string]>([
    ['no dimension', { dims: [], strides: [], box: [] }, '0 dimensions'],
    ['six dimensions', { dims: [1, 1, 1, 1, 1, 1] }, 'pass 1 to 5'],
    ['a missing stride', { strides: [] }, 'pass 1 and 2'],
    [
      'memory out of place',
      { place: { store: createByteStore(40000), offset: 8 } },
      'multiple of 16',
    ],
    ['an empty dimension', { dims: [128, 0] }, 'dimension 1 has 0 elements'],
    ['an odd stride', { strides: [264] }, 'stride of 264 bytes'],
    ['strides of too many elements', { elementStrides: [1, 9] }, 'a stride of 9 elements in'],
    ['a missing stride of elements', { elementStrides: [1] }, '1 strides of elements; pass 2'],
    ['a large box', { box: [64, 257] }, 'pass 1 to 256'],
    ['rows of 8 bytes', { box: [4, 8], swizzle: 'none' }, 'rows of a box have 8 bytes'],
    ['rows beyond the span', { box: [128, 8] }, 'split the box'],
    ['rows below the span', { box: [32, 8] }, 'take a narrower swizzling'],
    ['too little memory', { dims: [128, 129] }, 'ends at byte 33024 of 32768'],
  ])('refuse %s', (_, change, message) => {
    expect(() => createTensorMap({ ...good, ...change })).toThrow(message);
  });
});
