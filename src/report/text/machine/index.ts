export {
  describeKernels,
  describeMachineNames,
  renderBackwardEmulation,
  renderEmulation,
} from './emulation.js';
export { renderMachine, renderMachineVerdict } from './run.js';
