import { fusedMultiplyAddFloat32 } from '../../src/arith/index.js';
import { tanhApprox } from '../../src/hardware/index.js';
import type { KeyBlock } from './key-blocks.js';
import { onNumbers } from './units.js';

/**
 * Change of a score before it is masked, as in FlashAttention-4's `score_mod`: s·scale, which a softcap turns into
 * cap·tanh(s·scale / cap), plus the problem's addend, rounded to fp32. Every operation is fp32 and rounds by itself,
 * but for a product with the scale that is fused with the addition; tanh is the special function unit's.
 */
export interface ScoreChange {
  /** An fp32 number. */
  readonly scale: number;
  /** Rounded to fp32 where it is used; null for none. */
  readonly softcap: number | null;
  /** Whether s·scale and the addend are one fused multiply-add. Not with a softcap, which comes between them. */
  readonly fusesAddend: boolean;
}

const tanhHardware = onNumbers(tanhApprox);

/** Changes the scores of a block [rows × columns], fp32 numbers, in place before they are masked. */
export function changeScores(
  scores: Float32Array | Float64Array,
  { scale, softcap, fusesAddend }: ScoreChange,
  { addend }: Pick<KeyBlock, 'addend'>,
): void {
  const { fround } = Math;
  if (fusesAddend && addend !== null) {
    for (let i = 0; i < scores.length; i++)
      scores[i] = fusedMultiplyAddFloat32(scores[i], scale, fround(addend[i]));
    return;
  }
  const cap = softcap === null ? null : fround(softcap);
  for (let i = 0; i < scores.length; i++) {
    const scaled = fround(scores[i] * scale);
    const score = cap === null ? scaled : fround(cap * tanhHardware(fround(scaled / cap)));
    scores[i] = addend === null ? score : fround(score + fround(addend[i]));
  }
}
