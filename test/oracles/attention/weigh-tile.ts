import type { TileEngine } from '../../../oracles/attention/tile-engine.js';

/** A constant as a double-double. */
export interface Words {
  readonly high: number;
  readonly low: number;
}

/** Lets every row of an engine's tile see all of its 64 places, before any score was weighed. */
export function openRows({ low, high, reference, extent, maximum }: TileEngine): void {
  low.view.fill(0);
  high.view.fill(64);
  reference.view.fill(-Infinity);
  extent.view.fill(0);
  maximum.view.fill(-Infinity);
}

/** Turns the scores s of an engine's tile into weights of s·c, or with its addends a of s·c + a·d, in place. */
export function weighTile(engine: TileEngine, c: Words, d: Words | null = null): void {
  const { kernels, tileMemory, factors } = engine;
  const words = { cHigh: c.high, cLow: c.low, dHigh: d?.high ?? 0, dLow: d?.low ?? 0 };
  kernels.weights(tileMemory, factors.write(words), d !== null);
}
