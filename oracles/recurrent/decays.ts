import { decodeTensor } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { lazily } from '../../src/reuse.js';
import { log2eWords } from '../attention/logarithm-words.js';
import { createFloat64Exp2 } from '../exp2.js';
import {
  recurrentFamilies,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../src/problem/index.js';

const u = 2 ** -53;

/** Decays in octaves beyond this are out of range: below they are 0 with an error, above they are refused. */
const largestOctaves = 1000;

const exp2 = lazily(createFloat64Exp2);

/** The decay of one token: a factor for each row of the state. */
export interface TokenDecay {
  /** By key dimension; 0 for rows of padding, which so stay zero whatever overflows. */
  readonly factors: Float64Array;
  /** No decay is larger. */
  largest: number;
  /** What a decayed row errs by at most, by the factor and by the product's rounding, as a share of the row before. */
  error: number;
}

/**
 * Puts exp(gate) into `decay` for the rows from `first` to `end`. @throws RequestError for a gate that is NaN or too large
 * @param share what the gate errs by, relative to itself
 */
function setGate(
  decay: TokenDecay,
  gate: number,
  share: number,
  [first, end]: readonly [first: number, end: number],
): void {
  const octaves = gate * log2eWords().high;
  if (!(octaves <= largestOctaves))
    throw new RequestError(`a gate is ${gate}; give logarithms of decays, 0 or less as a rule`);
  let factor = 1;
  let error = 0;
  if (octaves < -largestOctaves) {
    factor = 0;
    error = gate === -Infinity ? 0 : 2 ** -999;
  } else if (gate !== 0) {
    factor = exp2()(octaves);
    const ofGate = share === 0 ? 0 : Math.expm1(Math.abs(gate) * share) * (1 + 2 ** -30);
    error = ((4.2 + 1.5 * Math.abs(octaves)) * u * (1 + ofGate) + ofGate) * factor;
  }
  decay.factors.fill(factor, first, end);
  decay.largest = Math.max(decay.largest, factor + error);
  decay.error = Math.max(decay.error, error);
}

/** Writes the decay of a token, counted over [batch, tokens], for a value head, and returns it. */
export type DecayReader = (token: number, head: number) => TokenDecay;

/** A reader of the problem's decays; what it returns is good until it is called again. */
export function decayReader(
  problem: RecurrentProblem,
  { valueHeads, keyDim }: RecurrentShape,
  paddedDim: number,
): DecayReader {
  const factors = new Float64Array(paddedDim).fill(1, 0, keyDim);
  const decay: TokenDecay = { factors, largest: 1, error: 0 };
  const { g, firstHead = 0, stepErrors, gateErrors } = problem;
  const rule = recurrentFamilies[problem.family].decay;
  if (rule === 'none') return () => decay;
  if (rule === 'fixed-by-head' || g === undefined)
    return (_, head) => {
      const factor = 1 - 2 ** (-5 - firstHead - head);
      factors.fill(factor, 0, keyDim);
      // The factor itself is rounded from head 48 on.
      decay.largest = factor + u;
      decay.error = 2 * u;
      return decay;
    };
  const count = rule === 'by-head' ? 1 : keyDim;
  const rows = keyDim / count;
  const gates = new Float64Array(count);
  return (token, head) => {
    const row = token * valueHeads + head;
    const share = stepErrors?.[row] ?? 0;
    decodeTensor(g, row * count, (row + 1) * count, gates);
    decay.largest = 0;
    decay.error = 0;
    for (let i = 0; i < count; i++) {
      const ofGate = gateErrors?.[row * count + i] ?? share;
      setGate(decay, gates[i], ofGate, [i * rows, (i + 1) * rows]);
    }
    return decay;
  };
}
