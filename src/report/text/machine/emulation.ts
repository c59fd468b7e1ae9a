import type { KernelModel } from '../../../../kernels/index.js';
import {
  machineNames,
  schedules,
  type BackwardResult,
  type EmulatedPass,
  type EmulateResult,
} from '../../../jobs/index.js';
import { memoryModels } from '../../../machine/index.js';
import { fitLines, layoutTable, wrapText } from '../../layout/index.js';

function section(title: string, entries: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...entries.map(([name]) => name.length));
  return [title, ...entries.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`), ''];
}

function passSections({ settings, counters, evidence }: EmulatedPass): string[] {
  const text = (values: Readonly<Record<string, unknown>>) =>
    Object.entries(values).map(
      ([name, value]) =>
        [name, typeof value === 'number' ? value.toLocaleString('en-US') : String(value)] as const,
    );
  return [
    ...(Object.keys(settings).length > 0 ? section('Settings', text(settings)) : []),
    ...(Object.keys(counters).length > 0 ? section('Counted', text(counters)) : []),
    'Evidence',
    ...evidence.map((line) => `  ${line}`),
    '',
  ];
}

function savedTo(saved: string | undefined): string {
  return saved === undefined ? '' : `, saved to ${saved}`;
}

/**
 * The results of a run of a kernel model, as text.
 * @param saved the file that its outputs were written to
 */
export function renderEmulation(
  { emulation, seconds }: EmulateResult,
  saved: string | undefined,
  columns: number,
): string {
  const { model, out } = emulation;
  const lines = [
    `${model}: out ${out.format} [${out.shape.join(', ')}] in ${seconds.toFixed(2)} s${savedTo(saved)}`,
    '',
    ...passSections(emulation),
  ];
  return fitLines(lines, columns).join('\n');
}

/** The results of an emulation of both passes. */
export function renderBackwardEmulation(
  { emulation, seconds }: BackwardResult,
  saved: string | undefined,
  columns: number,
): string {
  const { model, forward, ownForward } = emulation;
  const tensors = [
    ['out', forward.out],
    ['dq', emulation.dq],
    ['dk', emulation.dk],
    ['dv', emulation.dv],
  ] as const;
  const named = tensors.map(
    ([name, { format, shape }]) => `${name} ${format} [${shape.join(', ')}]`,
  );
  const lines = [
    `${model}: ${named.join(', ')} in ${seconds.toFixed(2)} s${savedTo(saved)}`,
    '',
    ...(ownForward === null ? [] : ['Forward pass', '', ...passSections(ownForward)]),
    'Backward pass',
    '',
    ...passSections(emulation),
  ];
  return fitLines(lines, columns).join('\n');
}

/** Number of columns of a setting's key, with the spaces around it. */
const keyColumns = 23;

/** The kernel models with their settings, as text. */
export function describeKernels(models: readonly KernelModel[], columns = 80): string {
  const ofSettings = (settings: KernelModel['settings']) =>
    settings.flatMap(({ key, description }) =>
      wrapText(description, columns - keyColumns).map(
        (line, i) => (i === 0 ? `  ${key}` : '').padEnd(keyColumns) + line,
      ),
    );
  const lines = models.flatMap(({ name, description, settings, backward }) => [
    ...wrapText(`${name}  ${description}${backward === null ? '' : '; with --backward'}`, columns),
    ...ofSettings(settings),
    ...(backward === null || backward.settings.length === 0
      ? []
      : ['  of the backward pass', ...ofSettings(backward.settings)]),
  ]);
  return `${lines.join('\n')}\n`;
}

/**
 * The schedules, memory models and mutants that the machine's options name, as text of this number of
 * columns; a mutant's id is never broken, so that it can be copied.
 */
export async function describeMachineNames(
  models: readonly KernelModel[],
  columns = 80,
): Promise<string> {
  const { mutants, adversarial } = await machineNames(models);
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
