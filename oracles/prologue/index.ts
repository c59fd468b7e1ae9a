export { prologueValues, writtenValues, type Spans } from './prologue-values.js';
export { angleRadius, computedTables, exactAngles } from './rotation-tables.js';
