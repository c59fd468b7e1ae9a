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
  const { kernels, scores, addends } = engine;
  const state = [
    engine.low.address,
    engine.high.address,
    engine.reference.address,
    engine.factor.address,
    engine.extent.address,
    engine.maximum.address,
    engine.tileTotal.address,
  ] as const;
  const ofScores = [c.high, c.low] as const;
  if (d === null) kernels.weights(scores.address, 64, 64, ...ofScores, ...state);
  else
    kernels.addedWeights(
      ...[scores.address, addends.address, 64, 64],
      ...ofScores,
      ...[d.high, d.low],
      ...state,
    );
}
