// AssemblyScript: the inner loops of the error profiles, two fp64 lanes at a time. What they compute is
// written in ../accumulate.ts, whose plain functions these equal bit for bit; here they are only fast.
export { countBreaks } from './record';
export { accumulate } from './errors';
export { isConstant, prepare } from './references';
export { classify, fillInputs } from './results';
export { roundResults } from './lanes';
