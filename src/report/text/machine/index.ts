export {
  describeKernels,
  describeMachineNames,
  renderBackwardEmulation,
  renderEmulation,
} from './emulation.js';
export { renderMachine } from './run.js';
