import { describe, expect, it } from 'vitest';
import { RealDomain } from '../../src/meaning/domains/index.js';
import { createRecorder, type Recorder, valueInStore } from '../../src/meaning/record/index.js';
import {
  decidedValue,
  lostValue,
  valueFormat,
  type ValueFormat,
} from '../../src/meaning/trace/index.js';
import { runLaunch } from '../../src/ptx/run/index.js';
import { capturedKernels } from '../fixtures/captured-ptx.js';
import { type CapturedLaunch, openCaptured } from '../ptx/run/captured-launch.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const formats: Readonly<Record<string, string>> = {
  BF16: 'bf16',
  F16: 'f16',
  F32: 'f32',
  F64: 'f64',
  F8_E4M3: 'e4m3',
  F8_E5M2: 'e5m2',
  I8: 's8',
  U8: 'u8',
  I32: 's32',
  I64: 's64',
};

/** What the bytes of tensors are whose file does not say it: elements of less than a byte, factors, and packed integers. */
const ofKernels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'triton-sm100-scaled-mxfp4': { a: 'e2m1x2', b: 'e2m1x2', sa: 'ue8m0', sb: 'ue8m0' },
  'triton-sm100-scaled-mxfp8': { a: 'e4m3', b: 'e5m2', sa: 'ue8m0', sb: 'ue8m0' },
  'triton-sm100-scaled-mxfp8-mxfp4': { a: 'e4m3', b: 'e2m1x2', sa: 'ue8m0', sb: 'ue8m0' },
  'triton-sm100-scaled-nvfp4-tma': { a: 'e2m1x2', b: 'e2m1x2', sa: 'e4m3', sb: 'e4m3' },
  'nvcc-mma-int8': { a: 's8', b: 'u8' },
};

/** Kernels with elements that are lost: those of library functions that compute with the bits of a significand as with an integer. */
const withLosses: readonly string[] = [
  ...['nvcc-bits', 'nvcc-double-library', 'nvcc-library', 'triton-rotary'],
];
/** A kernel that asks functions for results beyond their range: unbounded errors are what they are. */
const beyondRange: readonly string[] = ['nvcc-fast-functions'];

/** The largest error of an element, as a part of the largest one: some roundings of the format, or of those before it. */
const tolerances: Readonly<Record<string, number>> = {
  f64: 2 ** -40,
  f32: 2 ** -9,
  f16: 2 ** -9,
  bf16: 2 ** -6,
  e4m3: 2 ** -4,
  e5m2: 2 ** -3,
};

/** Tensors that only say where something lies. */
const places = /^(?:ids|kinds|positions|flags|locks)$/;

function followedInputs(name: string, { launch }: CapturedLaunch) {
  const outputs = launch.outputs.map((output) => output.name);
  return launch.tensors.flatMap(({ name: tensor, dtype }) => {
    const format = valueFormat(ofKernels[name]?.[tensor] ?? formats[dtype]);
    return format === null || outputs.includes(tensor) || places.test(tensor)
      ? []
      : [{ tensor, format }];
  });
}

/** The errors of an output's elements against their real values, and how many are lost. */
function errorsOf(
  { trace, stores }: Recorder,
  real: RealDomain,
  output: string,
  format: ValueFormat,
) {
  const store = stores.get(output)!;
  let [largest, worst, lost, unknown] = [0, 0, 0, 0];
  for (let byte = 0; byte < store.bytes.length; byte += format.bytes) {
    const value = valueInStore(trace, store, byte, format.bytes);
    if (value === lostValue) lost++;
    if (value <= decidedValue) continue;
    const number = trace.numberOf(value);
    if (!Number.isFinite(number)) continue;
    largest = Math.max(largest, Math.abs(number));
    const error = Math.abs(number - real.high[value]);
    if (Number.isNaN(error)) unknown++;
    else worst = Math.max(worst, error);
  }
  return { worst: largest === 0 ? 0 : worst / largest, lost, unknown };
}

async function expectFollowed(name: string): Promise<void> {
  const captured = await openCaptured(name);
  const { module, launch, tensors, options } = captured;
  const plain = runLaunch(module, launch, options);
  const recorder = createRecorder(followedInputs(name, captured));
  const traced = runLaunch(module, launch, { ...options, tracer: recorder.tracer });
  expect(traced.findings).toEqual(plain.findings);
  expect(traced.isComplete).toBe(plain.isComplete);
  for (const [tensor, bytes] of plain.tensors)
    expect([tensor, Buffer.compare(bytes, traced.tensors.get(tensor)!)]).toEqual([tensor, 0]);
  const real = new RealDomain(recorder.trace);
  for (const output of launch.outputs) {
    const format = valueFormat(formats[tensors.get(output.name)!.dtype])!;
    real.extend();
    const { worst, lost, unknown } = errorsOf(recorder, real, output.name, format);
    if (!withLosses.includes(name)) expect([output.name, lost]).toEqual([output.name, 0]);
    if (withLosses.includes(name) || beyondRange.includes(name)) continue;
    expect([output.name, unknown]).toEqual([output.name, 0]);
    expect(worst).toBeLessThanOrEqual(tolerances[format.name] ?? 0);
  }
}

describe('a run whose values are followed is the same run, and real values are near the bits', () => {
  const few = ['nvcc-mma-int8', 'nvcc-pipeline', 'triton-layer-norm', 'triton-sm100-softmax'];
  it.each(few)('%s', expectFollowed);
  inTurn.each(capturedKernels.filter(({ name }) => !few.includes(name)))(
    '$name',
    ({ name }) => expectFollowed(name),
    60_000,
  );
});
