// AssemblyScript: the fp64 inner loops of the structure tests, two lanes at a time. Nothing here carries a radius: results are off
// by some 2^-44 of themselves, far below what the tests tell apart.

export { product } from '../../../../oracles/attention/assembly/tile-kernels';
export { makeInstruments, measureRows, projectRow } from './elements';
export { addErrors } from './errors';
export { surveyWeights } from './survey';
export { addWeights, clearRow, movePool, summarise } from './rows';
