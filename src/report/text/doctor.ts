import { layoutColumns } from '../layout/index.js';

/** The findings about one thing that a machine may have. */
export interface MachineProbe {
  readonly name: string;
  /** Whether flashproof needs it. */
  readonly isNeeded: boolean;
  readonly isUsable: boolean;
  /** The version or amount that is there; empty where nothing is. */
  readonly found: string;
  /** The use of it; where it is not usable, the remedy. */
  readonly note: string;
}

/** The probes as a table, and a sentence on them, newline at the end. */
export function renderProbes(probes: readonly MachineProbe[]): string {
  const mark = ({ isUsable, isNeeded }: MachineProbe) =>
    isUsable ? 'ok' : isNeeded ? 'MISSING' : '-';
  const rows = probes.map((probe) => [probe.name, mark(probe), probe.found || 'none', probe.note]);
  const lines = layoutColumns(rows, () => 'left').map((line) => line.trimEnd());
  return `${[...lines, '', probeSentence(probes)].join('\n')}\n`;
}

/** Whether everything needed is present, in a sentence. */
export function probeSentence(probes: readonly MachineProbe[]): string {
  const missing = probes.filter(({ isNeeded, isUsable }) => isNeeded && !isUsable);
  return missing.length === 0
    ? 'All that flashproof needs is here.'
    : `Not usable: ${missing.map(({ name }) => name).join(', ')}.`;
}
