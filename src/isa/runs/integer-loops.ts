import { isActive, type RunLoop, warpLanes } from './run.js';

/** The largest amount that `shl` and `shr` distinguish: they shift by 32 at most. */
const registerBits = 32;

/** a · 2^amount modulo 2^32: PTX's `shl.b32`, which shifts everything out from 32 on. */
export function shiftLeft(a: number, amount: number): number {
  return amount >>> 0 < registerBits ? (a << amount) >>> 0 : 0;
}

/** Integer sums over runs, modulo 2^32. */
export const addIntegersLoop: RunLoop = ({ destination, sources: [a, b], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  const { words: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep)
      words[at] = (x[i] + y[j]) | 0;
  }
};

/** `shiftLeft` over runs. */
export const shiftLeftLoop: RunLoop = ({ destination, sources: [a, b], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  const { words: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep)
      words[at] = y[j] < registerBits ? x[i] << y[j] : 0;
  }
};

/** Copies over runs. */
export const moveLoop: RunLoop = ({ destination, sources: [a], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep) words[at] = x[i];
  }
};
