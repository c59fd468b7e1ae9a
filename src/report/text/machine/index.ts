export { describeKernels, describeMachineNames, renderEmulation } from './emulation.js';
export { renderMachine } from './run.js';
