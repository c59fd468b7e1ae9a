import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decode, formats } from '../../../src/formats/index.js';
import { openLaunch } from '../../../src/jobs/index.js';
import { findingWeight } from '../../../src/machine/index.js';
import { RealDomain } from '../../../src/meaning/domains/index.js';
import { createRecorder, valueInStore } from '../../../src/meaning/record/index.js';
import { decidedValue, valueFormat } from '../../../src/meaning/trace/index.js';
import type { Launch, LaunchTensor } from '../../../src/ptx/launch/index.js';
import { runLaunch, type LaunchRun } from '../../../src/ptx/run/index.js';
import { parsePtx, type PtxModule } from '../../../src/ptx/syntax/index.js';

const recorded = 'examples/triton/recorded';
const open = (name: string) => openLaunch({ path: `${recorded}/${name}/launch.json` });

function numbersOf(run: LaunchRun, name: string, format: 'fp32' | 'bf16'): Float64Array {
  const bytes = run.tensors.get(name)!.slice().buffer;
  const patterns = format === 'fp32' ? new Uint32Array(bytes) : new Uint16Array(bytes);
  return Float64Array.from(patterns, (bits) => decode(formats[format], bits));
}

function checkRun(run: LaunchRun): void {
  expect(run.isComplete).toBe(true);
  expect(run.findings.filter(({ kind }) => findingWeight(kind) !== 'hint')).toEqual([]);
}

describe("Triton's attention for sm_120", () => {
  it('runs by its own target, and has the bits of Hopper’s mma.sync', async () => {
    const { module, launch } = await open('sm_120');
    expect(module.target).toBe('sm_120a');
    const run = runLaunch(module, launch, { file: 'sm_120' });
    checkRun(run);
    expect(run.architecture).toBe('sm_120');
    const hopper = runLaunch(module, launch, {
      file: 'sm_120',
      architecture: 'sm_90',
      races: false,
    });
    expect(run.tensors.get('o')).toEqual(hopper.tensors.get('o'));
    // Sums of 8 products at a time have others.
    const ampere = runLaunch(module, launch, {
      file: 'sm_120',
      architecture: 'sm_80',
      races: false,
    });
    expect(run.tensors.get('lse')).not.toEqual(ampere.tensors.get('lse'));
  });

  it.each([
    ['sm_90', 'sm_120', 'wgmma (which is not on sm_120 but on sm_90)'],
    ['sm_100', 'sm_120', 'tcgen05 (which is not on sm_120 but on sm_100, sm_103, sm_110)'],
    ['sm_90', 'sm_110', 'wgmma (which is not on sm_110 but on sm_90)'],
    ['nvfp4-sm_120', 'sm_110', '(which is not on sm_110 but on sm_120)'],
  ] as const)('the kernel for %s does not run on %s: %s', async (name, architecture, message) => {
    const { module, launch } = await open(name);
    const run = () => runLaunch(module, launch, { file: 'kernel', architecture });
    expect(run).toThrow(message);
    expect(run).toThrow(/^[^\n]{1,300}$/);
  });

  it.each([
    ['sm_121a', 'sm_120'],
    ['sm_101a', 'sm_110'],
    ['sm_110a', 'sm_110'],
    ['sm_103a', 'sm_103'],
  ])('a text for %s runs on %s', (target, architecture) => {
    const module = parsePtx(
      `.version 8.8\n.target ${target}\n.address_size 64\n.visible .entry k() { ret; }`,
      'k.ptx',
    );
    const launch: Launch = {
      entry: 'k',
      grid: [1, 1, 1],
      block: [32, 1, 1],
      cluster: [1, 1, 1],
      dynamicSharedBytes: 0,
      parameters: new Uint8Array(0),
      pointers: [],
      tensorMaps: [],
      tensors: [],
      scratch: [],
      outputs: [],
    };
    expect(runLaunch(module, launch, { file: 'k.ptx' }).architecture).toBe(architecture);
  });
});

/** The numbers of Q or K in fp64: elements times the factors of their blocks. */
function scaledRows(format: 'nvfp4' | 'mxfp8', elements: LaunchTensor, factors: LaunchTensor) {
  const numbers = Array.from(elements.bytes).flatMap((byte) =>
    format === 'mxfp8'
      ? [decode(formats.e4m3, byte)]
      : [byte & 15, byte >> 4].map((half) => decode(formats.e2m1, half)),
  );
  const scale = Array.from(factors.bytes, (bits) =>
    format === 'mxfp8' ? 2 ** (bits - 127) : decode(formats.e4m3, bits),
  );
  const block = numbers.length / scale.length;
  return numbers.map((x, i) => x * scale[Math.floor(i / block)]);
}

/** The LSE of each row, in fp64. */
function exactLse(
  format: 'nvfp4' | 'mxfp8',
  tensors: ReadonlyMap<string, LaunchTensor>,
  dim: number,
): number[] {
  const [q, k] = ['q', 'k'].map((name) =>
    scaledRows(format, tensors.get(name)!, tensors.get(`${name}_block_scale`)!),
  );
  return Array.from({ length: q.length / dim }, (_, row) => {
    const scores = Array.from({ length: k.length / dim }, (_, key) => {
      let sum = 0;
      for (let d = 0; d < dim; d++) sum += q[row * dim + d] * k[key * dim + d];
      return sum / Math.sqrt(dim);
    });
    const largest = Math.max(...scores);
    return largest + Math.log(scores.reduce((all, s) => all + Math.exp(s - largest), 0));
  });
}

/** The largest error of the LSE. */
function lseError(format: 'nvfp4' | 'mxfp8', module: PtxModule, launch: Launch, dim = 64): number {
  const run = runLaunch(module, launch, { file: format });
  checkRun(run);
  const exact = exactLse(format, new Map(launch.tensors.map((one) => [one.name, one])), dim);
  return Math.max(...numbersOf(run, 'lse', 'fp32').map((lse, row) => Math.abs(lse - exact[row])));
}

describe.each(['nvfp4', 'mxfp8'] as const)("Triton's attention with scores of %s", (format) => {
  const name = `${format}-sm_120`;

  it('has the LSE of the products with their factors', async () => {
    const { module, launch } = await open(name);
    // Scores reach some hundreds, of which an fp32 number keeps 2^-16.
    expect(lseError(format, module, launch)).toBeLessThan(2 ** -15);
  });

  it('does not, with factors of A for those of B', async () => {
    const { launch } = await open(name);
    const text = readFileSync(`${recorded}/${name}/kernel.ptx`, 'utf8');
    const exchanged = text.replace(
      /(mma\.sync[^\n]*block_scale[^\n]*\}, )(%r\d+)(, \{ 0, 0 \}, )(%r\d+)(, \{ 0, 0 \};)/,
      '$1$4$3$2$5',
    );
    expect(exchanged).not.toBe(text);
    expect(lseError(format, parsePtx(exchanged, 'exchanged.ptx'), launch)).toBeGreaterThan(0.01);
  });

  it('is near to its real value, which elements and factors make', async () => {
    const { module, launch } = await open(name);
    const isPacked = format === 'nvfp4';
    const [ofElements, ofFactors] = isPacked ? ['e2m1x2', 'e4m3'] : ['e4m3', 'ue8m0'];
    const inputs = [
      ...['q', 'k'].map((tensor) => ({ tensor, format: valueFormat(ofElements)! })),
      ...['q_block_scale', 'k_block_scale'].map((tensor) => ({
        tensor,
        format: valueFormat(ofFactors)!,
      })),
      { tensor: 'v', format: valueFormat('bf16')! },
    ];
    const recorder = createRecorder(inputs);
    runLaunch(module, launch, { file: name, races: false, tracer: recorder.tracer });
    const real = new RealDomain(recorder.trace);
    for (const [output, bytes, tolerance] of [
      ['o', 2, 2 ** -6],
      ['lse', 4, 2 ** -15],
    ] as const) {
      real.extend();
      const store = recorder.stores.get(output)!;
      for (let at = 0; at < store.bytes.length; at += bytes) {
        const value = valueInStore(recorder.trace, store, at, bytes);
        expect(value).toBeGreaterThan(decidedValue);
        const error = Math.abs(recorder.trace.numberOf(value) - real.high[value]);
        expect(error).toBeLessThan(tolerance * Math.max(1, Math.abs(real.high[value])));
      }
    }
  });
});

describe("nvcc's attention with factors in the bytes of a word", () => {
  const folder = 'examples/geforce/recorded';

  it('has the LSE of the products with their factors', async () => {
    const { module, launch } = await openLaunch({ path: `${folder}/launch.json` });
    expect(lseError('mxfp8', module, launch, 128)).toBeLessThan(2 ** -18);
  });

  /** The error with another text in the place of a part of each of its products. */
  async function errorWith(part: RegExp, other: string): Promise<number> {
    const { launch } = await openLaunch({ path: `${folder}/launch.json` });
    const text = readFileSync(`${folder}/kernel.ptx`, 'utf8');
    const changed = text.replaceAll(/mma\.sync[^\n]*block_scale[^\n]*/g, (line) => {
      expect(line).toMatch(part);
      return line.replace(part, other);
    });
    return lseError('mxfp8', parsePtx(changed, 'changed.ptx'), launch, 128);
  }

  it.each([
    ['one byte', /\{%rs\d+,1\},(\{%r\d+\}),\{%rs\d+,2\}/, '{0,1},$1,{0,2}'],
    ['other rows', /,1\},(\{%r\d+\}),/, ',0},$1,'],
  ])('does not, with factors of %s', async (_, part, other) => {
    expect(await errorWith(part, other)).toBeGreaterThan(0.01);
  });

  it('has it from any lane of four that has the factors of a column', async () => {
    expect(await errorWith(/,2\};/, ',3};')).toBeLessThan(2 ** -18);
  });
});
