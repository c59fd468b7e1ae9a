import { machineMutants } from '../../kernels/index.js';
import { alignTextColumns } from '../align-columns.js';
import { memoryModels } from '../machine/index.js';
import { adversarialNames } from './machine-schedule.js';

/** The schedules, memory models and mutants that the machine's options name, as text. */
export function describeMachineNames(): string {
  return [
    '--schedule',
    ...alignTextColumns([
      ['in-order', 'each warp goes on until it has to wait; operations complete at once'],
      ['timed', "by the clocks of an SM's units"],
      ['random:<seed>', 'any step, some left behind for long'],
    ]),
    ...adversarialNames().map((name) => `  ${name}`),
    '',
    '--model',
    ...alignTextColumns(
      Object.values(memoryModels).map(({ name, description }) => [name, description]),
    ),
    '',
    `--mutant, one of ${machineMutants.length}`,
    ...machineMutants.map(({ id }) => `  ${id}`),
    '',
  ].join('\n');
}
