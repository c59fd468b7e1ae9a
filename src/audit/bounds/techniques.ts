import type { Technique } from '../../../kernels/index.js';
import { exp2Hardware } from './exp2-hardware.js';
import { exp2PolynomialBound } from './exp2-polynomial.js';
import { normaliseBound } from './normalise.js';
import { pRound } from './p-round.js';
import { pvAccumulate } from './pv-accumulate.js';
import { qkAccumulate } from './qk-accumulate.js';
import { rescaleBound } from './rescale.js';
import { rowSumBound } from './row-sum.js';
import { scaleSubtract } from './scale-subtract.js';
import type { TechniqueBound } from './technique-bound.js';

/** The bounds of the techniques that act before the output is rounded. */
export const innerTechniques: Readonly<Record<Exclude<Technique, 'output-round'>, TechniqueBound>> =
  {
    'qk-accumulate': qkAccumulate,
    'scale-subtract': scaleSubtract,
    'exp2-hardware': exp2Hardware,
    'exp2-polynomial': exp2PolynomialBound,
    'p-round': pRound,
    rescale: rescaleBound,
    'pv-accumulate': pvAccumulate,
    'row-sum': rowSumBound,
    normalise: normaliseBound,
  };
