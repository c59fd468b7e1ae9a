import type { KernelModel, ProgramMutant } from '../../../kernels/index.js';
import { memoryModels } from '../../machine/index.js';
import { layoutTable } from '../../report/layout/index.js';
import { listHead, type ListHead, adversarialNames } from '../../jobs/index.js';
import { toolVersion } from '../tool-version.js';

/** The schedules that are not adversarial; of `random:` any seed. */
const schedules = [
  {
    name: 'in-order',
    description: 'each warp goes on until it has to wait; operations complete at once',
  },
  { name: 'timed', description: "by the clocks of an SM's units" },
  { name: 'random:<seed>', description: 'any step, some left behind for long' },
] as const;

/** The programs of models, with all their mutants, and the adversarial schedules of their warps. */
export function machineNames(models: readonly KernelModel[]) {
  const programs = models.flatMap(({ program }) => (program === null ? [] : [program]));
  return {
    mutants: programs.flatMap(({ mutants }) => mutants),
    adversarial: [
      ...new Set(programs.flatMap(({ warpNames }) => adversarialNames(warpNames.length))),
    ],
  };
}

/**
 * The schedules, memory models and mutants that the machine's options name, as text of so many columns; a
 * mutant's id, to be copied, is never broken.
 */
export function describeMachineNames(models: readonly KernelModel[], columns = 80): string {
  const { mutants, adversarial } = machineNames(models);
  const table = (rows: readonly { readonly name: string; readonly description: string }[]) =>
    layoutTable(
      rows.map(({ name, description }) => [`  ${name}`, description]),
      { alignments: [], width: columns, paint: (_, text) => text },
    );
  return [
    '--schedule',
    ...table(schedules),
    ...adversarial.map((name) => `  ${name}`),
    '',
    '--model',
    ...table(Object.values(memoryModels)),
    '',
    `--mutant, one of ${mutants.length}`,
    ...mutants.map(({ id }) => `  ${id}`),
    '',
  ].join('\n');
}

/** What the machine's options name, as `emulate list --machine --json` writes it. */
export interface MachineList extends ListHead<'machine-list'> {
  /** Adversarial schedules have no description but their name. */
  readonly schedules: readonly { readonly name: string; readonly description: string | null }[];
  readonly models: readonly { readonly name: string; readonly description: string }[];
  readonly mutants: readonly Pick<
    ProgramMutant,
    'id' | 'site' | 'kind' | 'description' | 'needsPair' | 'model'
  >[];
}

/** The JSON document of what the machine's options name. */
export function machineList(models: readonly KernelModel[]): MachineList {
  const { mutants, adversarial } = machineNames(models);
  return {
    ...listHead('machine-list', toolVersion()),
    schedules: [...schedules, ...adversarial.map((name) => ({ name, description: null }))],
    models: Object.values(memoryModels).map(({ name, description }) => ({ name, description })),
    mutants: mutants.map(({ id, site, kind, description, needsPair, model }) => ({
      id,
      site,
      kind,
      description,
      needsPair,
      model,
    })),
  };
}
