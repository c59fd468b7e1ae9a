import { formats } from '../../formats/index.js';
import { addFloat32, type Float32Options, fusedMultiplyAddFloat32 } from '../../arith/index.js';
import { isActive, type Run, type RunLoop, warpLanes } from './run.js';

/** The NaN that fp32 arithmetic delivers for every NaN operand and invalid operation. */
const canonicalNan = formats.fp32.canonicalNan;

/** The choice of PTX's `min` and `max` between two fp32 numbers. */
interface ExtremumRule {
  readonly isMaximum: boolean;
  /** `.NaN`: a NaN wins; without it a NaN loses against a number. */
  readonly keepsNan: boolean;
  /** `.ftz`: subnormal operands count as zeros of their sign. */
  readonly flushToZero: boolean;
}

const flushing = { flushToZero: true } as const;

/** A subnormal fp32 number as the zero of its sign. */
export function flushedFloat32(value: number): number {
  return addFloat32(value, -0, flushing);
}

/**
 * `min` or `max` of two fp32 numbers by the rule; −0 counts as less than +0, and subnormals are kept
 * but for `flushToZero`. NaN when both operands are. Source: PTX ISA, instructions `min` and `max`.
 */
function extremum(a: number, b: number, rule: ExtremumRule): number {
  const x = rule.flushToZero ? flushedFloat32(a) : a;
  const y = rule.flushToZero ? flushedFloat32(b) : b;
  const chosen = rule.isMaximum ? Math.max(x, y) : Math.min(x, y);
  if (chosen === chosen || rule.keepsNan) return chosen;
  return x === x ? x : y;
}

// The operations that kernels spend their time in have loops of their own, which differ in one line:
// an operation called through a variable makes V8 box its numbers and takes five times as long, and so
// does one that other loops call in other ways.

/** fp32 sums over runs, to nearest even with subnormals kept: storing rounds the fp64 sum as `addFloat32` does. A NaN is stored as 0x7fffffff. */
export function addToNearestLoop(run: Run): void {
  const {
    destination,
    sources: [a, b],
    count,
    activeLanes,
  } = run;
  const { floats, words, step } = destination;
  const { floats: x, step: aStep } = a;
  const { floats: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep) {
      const value = x[i] + y[j];
      floats[at] = value;
      if (value !== value) words[at] = canonicalNan;
    }
  }
}

/** fp32 differences over runs, as `subtractFloat32` rounds by default. A NaN is stored as 0x7fffffff. */
export function subtractToNearestLoop(run: Run): void {
  const {
    destination,
    sources: [a, b],
    count,
    activeLanes,
  } = run;
  const { floats, words, step } = destination;
  const { floats: x, step: aStep } = a;
  const { floats: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep) {
      const value = x[i] - y[j];
      floats[at] = value;
      if (value !== value) words[at] = canonicalNan;
    }
  }
}

/** fp32 products over runs, as `multiplyFloat32` rounds by default. A NaN is stored as 0x7fffffff. */
export function multiplyToNearestLoop(run: Run): void {
  const {
    destination,
    sources: [a, b],
    count,
    activeLanes,
  } = run;
  const { floats, words, step } = destination;
  const { floats: x, step: aStep } = a;
  const { floats: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep) {
      const value = x[i] * y[j];
      floats[at] = value;
      if (value !== value) words[at] = canonicalNan;
    }
  }
}

/** `fusedMultiplyAddFloat32` over runs, to nearest even with subnormals kept. A NaN is stored as 0x7fffffff. */
export function fusedMultiplyAddToNearestLoop(run: Run): void {
  const {
    destination,
    sources: [a, b, c],
    count,
    activeLanes,
  } = run;
  const { floats, words, step } = destination;
  const { floats: x, step: aStep } = a;
  const { floats: y, step: bStep } = b;
  const { floats: z, step: cStep } = c;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    let k = c.first + lane * c.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep, k += cStep) {
      const value = fusedMultiplyAddFloat32(x[i], y[j], z[k]);
      floats[at] = value;
      if (value !== value) words[at] = canonicalNan;
    }
  }
}

/** `addFloat32` over runs, rounded as the options say. A NaN is stored as 0x7fffffff. */
export function addLoop(options: Float32Options): RunLoop {
  return (run) => {
    const {
      destination,
      sources: [a, b],
      count,
      activeLanes,
    } = run;
    const { floats, words, step } = destination;
    const { floats: x, step: aStep } = a;
    const { floats: y, step: bStep } = b;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!isActive(activeLanes, lane)) continue;
      let at = destination.first + lane * destination.laneStride;
      let i = a.first + lane * a.laneStride;
      let j = b.first + lane * b.laneStride;
      for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep) {
        const value = addFloat32(x[i], y[j], options);
        floats[at] = value;
        if (value !== value) words[at] = canonicalNan;
      }
    }
  };
}

/** `extremum` over runs. A NaN is stored as 0x7fffffff. */
export function extremumLoop(rule: ExtremumRule): RunLoop {
  return (run) => {
    const {
      destination,
      sources: [a, b],
      count,
      activeLanes,
    } = run;
    const { floats, words, step } = destination;
    const { floats: x, step: aStep } = a;
    const { floats: y, step: bStep } = b;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!isActive(activeLanes, lane)) continue;
      let at = destination.first + lane * destination.laneStride;
      let i = a.first + lane * a.laneStride;
      let j = b.first + lane * b.laneStride;
      for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep) {
        const value = extremum(x[i], y[j], rule);
        floats[at] = value;
        if (value !== value) words[at] = canonicalNan;
      }
    }
  };
}

/** The `extremum` of three operands over runs. A NaN is stored as 0x7fffffff. */
export function extremumOfThreeLoop(rule: ExtremumRule): RunLoop {
  return (run) => {
    const {
      destination,
      sources: [a, b, c],
      count,
      activeLanes,
    } = run;
    const { floats, words, step } = destination;
    const { floats: x, step: aStep } = a;
    const { floats: y, step: bStep } = b;
    const { floats: z, step: cStep } = c;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!isActive(activeLanes, lane)) continue;
      let at = destination.first + lane * destination.laneStride;
      let i = a.first + lane * a.laneStride;
      let j = b.first + lane * b.laneStride;
      let k = c.first + lane * c.laneStride;
      for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep, k += cStep) {
        const value = extremum(extremum(x[i], y[j], rule), z[k], rule);
        floats[at] = value;
        if (value !== value) words[at] = canonicalNan;
      }
    }
  };
}
