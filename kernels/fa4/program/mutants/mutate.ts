import { memoryModels, type WarpProgram } from '../../../../src/machine/index.js';
import type { ProgramPlan } from '../plan.js';
import type { ProgramChange, ProgramRunOptions } from '../run-program.js';
import { edits, type Edit, type EditName } from './edits.js';
import { applyMove } from './moves.js';
import type { MachineMutant } from './mutant.js';

function editing(name: EditName, site: string): ProgramChange {
  const edit: Edit = edits[name];
  return function* (program: WarpProgram): WarpProgram {
    let uses = 0;
    for (const instruction of program) {
      if (instruction.site !== site) yield instruction;
      else {
        const edited = edit.apply(instruction, uses++);
        if (edited !== null) yield edited;
      }
    }
  };
}

/**
 * The options with which `prepareFa4Program` runs a mutant. It only filters the instructions of the
 * warps, or sets options: the program knows nothing of it. A change counts from the warp's beginning, so
 * it may be used for several runs.
 *
 * @param plan of the program without the mutant
 */
export function mutate(
  { change, site, model }: MachineMutant,
  { ring }: Pick<ProgramPlan, 'ring'>,
): Pick<ProgramRunOptions, 'change' | 'ring' | 'isaFences' | 'model'> {
  const options = model === 'practice' ? {} : { isaFences: true, model: memoryModels[model] };
  if ('edit' in change) return { ...options, change: editing(change.edit, site) };
  if ('move' in change) return { ...options, change: (program) => applyMove(change.move, program) };
  const { party, more } = change.ring;
  return { ...options, ring: { ...ring, [party]: ring[party] + more } };
}
