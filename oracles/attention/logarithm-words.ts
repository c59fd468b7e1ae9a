import { doubleDoubleFromRational, type DoubleDouble } from '../../src/arith/index.js';
import { lazily } from '../../src/reuse.js';
import { ln2, log2e } from '../fixed-point.js';

const bits = 200;
const one = 1n << BigInt(bits);

/** ln 2 as a double-double, relative error at most u², u = 2^-53. */
export const ln2Words = lazily((): DoubleDouble => doubleDoubleFromRational(ln2(bits), one));

/** log2 e likewise: the factor of addends and sinks. */
export const log2eWords = lazily((): DoubleDouble => doubleDoubleFromRational(log2e(bits), one));
