import { describe, expect } from 'vitest';
import { decode, formats } from '../../../src/formats/index.js';
import { findingWeight, memoryModels } from '../../../src/machine/index.js';
import type { LaunchTensor } from '../../../src/ptx/launch/index.js';
import { turns } from '../../setup/turns.js';
import { openCaptured, runCaptured } from './captured-launch.js';

const inTurn = turns(import.meta.url);

type Format = 'e4m3' | 'e5m2' | 'e2m1';

/** A kernel: formats of A and B, those of the factors, and elements that share one. */
interface Scaled {
  readonly kernel: string;
  readonly a: Format;
  readonly b: Format;
  readonly scale: 'ue8m0' | 'ue4m3';
  readonly block: 16 | 32;
  /** How the factors lie in memory: by rows, or as tcgen05.cp takes them. */
  readonly isShuffled: boolean;
}

const kernels: readonly Scaled[] = [
  {
    kernel: 'triton-sm100-scaled-mxfp8',
    a: 'e4m3',
    b: 'e5m2',
    scale: 'ue8m0',
    block: 32,
    isShuffled: false,
  },
  {
    kernel: 'triton-sm100-scaled-mxfp4',
    a: 'e2m1',
    b: 'e2m1',
    scale: 'ue8m0',
    block: 32,
    isShuffled: false,
  },
  {
    kernel: 'triton-sm100-scaled-mxfp8-mxfp4',
    a: 'e4m3',
    b: 'e2m1',
    scale: 'ue8m0',
    block: 32,
    isShuffled: false,
  },
  {
    kernel: 'triton-sm100-scaled-nvfp4-tma',
    a: 'e2m1',
    b: 'e2m1',
    scale: 'ue4m3',
    block: 16,
    isShuffled: true,
  },
];

/** The numbers of packed elements, the low half of a byte first. */
function elements(format: Format, bytes: Uint8Array): number[] {
  if (format !== 'e2m1') return Array.from(bytes, (pattern) => decode(formats[format], pattern));
  return Array.from(bytes).flatMap((byte) =>
    [byte & 15, byte >> 4].map((pattern) => decode(formats.e2m1, pattern)),
  );
}

/** Rows of numbers times their factors: exact in fp64. */
function matrixOf(
  { scale, block, isShuffled }: Scaled,
  format: Format,
  data: LaunchTensor,
  factors: LaunchTensor,
): number[][] {
  const [rows, columns] = factors.shape;
  const numbers = elements(format, data.bytes);
  const k = numbers.length / rows;
  const factor = (row: number, column: number): number => {
    const [block128, quarter, lane] = [Math.floor(row / 128), Math.floor(row / 32) % 4, row % 32];
    const shuffled =
      (((block128 * columns) / 4 + Math.floor(column / 4)) * 32 + lane) * 16 +
      quarter * 4 +
      (column % 4);
    const bits = factors.bytes[isShuffled ? shuffled : row * columns + column];
    return scale === 'ue8m0' ? 2 ** (bits - 127) : decode(formats.e4m3, bits);
  };
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: k }, (_, i) => numbers[row * k + i] * factor(row, Math.floor(i / block))),
  );
}

describe('a block-scaled product of Triton, without a finding', () => {
  inTurn.each(kernels)(
    '$kernel: the exact product but for what fp32 sums lose',
    async (kernel) => {
      const { tensors } = await openCaptured(kernel.kernel);
      const { run } = await runCaptured(kernel.kernel);
      const found = run.findings.filter(({ kind }) => findingWeight(kind) !== 'hint');
      expect(found).toEqual([]);
      expect(run.isComplete).toBe(true);
      const tensor = (name: string) => tensors.get(name)!;
      const a = matrixOf(kernel, kernel.a, tensor('a'), tensor('sa'));
      const b = matrixOf(kernel, kernel.b, tensor('b'), tensor('sb'));
      const c = new Float32Array(run.tensors.get('c')!.slice().buffer);
      // 65 terms at most are truncated in each sum to 25 bits below the largest, and each result to 23 bits.
      const sums = a[0].length / (kernel.a === 'e2m1' && kernel.b === 'e2m1' ? 64 : 32);
      const share = sums * (33 * 2 ** -24 + 2 ** -23);
      let used = 0;
      a.forEach((row, i) =>
        b.forEach((column, j) => {
          const products = row.map((x, k) => x * column[k]);
          const exact = products.reduce((all, one) => all + one, 0);
          const magnitude = products.reduce((all, one) => all + Math.abs(one), 0);
          used = Math.max(used, Math.abs(c[i * b.length + j] - exact) / magnitude);
        }),
      );
      expect(used).toBeLessThan(share);
      expect(c.some((x) => x !== 0)).toBe(true);
      // Of two elements a byte the tensor core has no rate here.
      const flops = 2 * a.length * b.length * a[0].length;
      const isPacked = kernel.a === 'e2m1';
      expect(run.work.unratedFlops).toBe(isPacked ? flops : 0);
      const rated = run.work.lines.find(({ unit }) => unit === 'tensor core')?.amount ?? 0;
      expect(rated).toBe(isPacked ? 0 : flops);
    },
    60_000,
  );

  inTurn(
    'scales that are copied over those that an MMA reads need an order by the ISA',
    async () => {
      const { run } = await runCaptured('triton-sm100-scaled-nvfp4-tma', {
        model: memoryModels.ptx,
      });
      const copies = run.findings.filter(
        ({ kind, message }) => kind === 'race' && /tcgen05\.mma.*tcgen05\.cp/.test(message),
      );
      expect(copies.length).toBeGreaterThan(0);
    },
  );
});
