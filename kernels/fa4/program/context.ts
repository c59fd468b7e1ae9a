import type { TensorMap, WarpPlace } from '../../../src/machine/index.js';
import type { ProgramPlan } from './plan.js';
import type { RowArithmetic } from './rows/index.js';
import type { WorkTile } from './tiles.js';

/** What every warp of a CTA is given. */
export interface ProgramContext {
  readonly plan: ProgramPlan;
  readonly place: WarpPlace;
  readonly tiles: readonly WorkTile[];
  readonly rows: RowArithmetic;
  readonly maps: {
    readonly q: TensorMap;
    readonly k: TensorMap;
    readonly v: TensorMap;
    readonly o: TensorMap;
  };
  /** [batch · heads · queries] fp32 bits. */
  readonly lse: Uint32Array;
}

/** What the warps of a CTA do. Source: `__init__` of FlashAttentionForwardSm100. */
export const warpRoles = [
  ...(['softmax', 'softmax', 'softmax', 'softmax'] as const),
  ...(['softmax', 'softmax', 'softmax', 'softmax'] as const),
  ...(['correction', 'correction', 'correction', 'correction'] as const),
  ...(['MMA', 'epilogue', 'load', 'idle'] as const),
];

/** What findings call a warp. */
export function warpName(warp: number): string {
  const role = warpRoles[warp];
  return role === 'softmax' ? `warp ${warp} (softmax ${warp >> 2})` : `warp ${warp} (${role})`;
}
