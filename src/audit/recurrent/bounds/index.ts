export { recurrentWorstCase } from './recurrent-worst-case.js';
