import { describeRegime, lawIds, laws, regimeNames } from '../../../properties/index.js';
import { wrapText } from '../../report/layout/index.js';
import { listHead, type ListHead } from '../../jobs/index.js';
import { toolVersion } from '../tool-version.js';

function indented(text: string, columns: number): string[] {
  return wrapText(text, columns - 4).map((line) => `    ${line}`);
}

/** Every property with its law, reason and promise, and every regime with what it is for, as text. */
export function renderCheckList(columns = 80): string {
  const properties = lawIds.flatMap((id) => {
    const { statement, reason, strengths, usual } = laws[id];
    const promises = [...strengths, 'none'].join(', ');
    return [
      `  ${id}`,
      ...indented(`${statement}. ${reason}`, columns),
      ...indented(`Promise: ${usual}, if nothing else is said; of ${promises}.`, columns),
    ];
  });
  const regimes = regimeNames.flatMap((name) => {
    const { description, provokes } = describeRegime(name);
    return [
      `  ${name}`,
      ...indented(description, columns),
      ...indented(`For ${provokes}`, columns),
    ];
  });
  return `${['Properties', ...properties, '', 'Regimes', ...regimes].join('\n')}\n`;
}

/** The properties and regimes, as `check --list --json` writes them. */
export interface CheckList extends ListHead<'check-list'> {
  readonly properties: readonly {
    readonly name: string;
    readonly statement: string;
    readonly reason: string;
    /** What a kernel may promise of it. */
    readonly promises: readonly string[];
    /** What it promises if nothing is said. */
    readonly usualPromise: string;
  }[];
  readonly regimes: readonly {
    readonly name: string;
    readonly description: string;
    readonly provokes: string;
  }[];
}

/** The JSON document of the properties and regimes. */
export function checkList(): CheckList {
  return {
    ...listHead('check-list', toolVersion()),
    properties: lawIds.map((name) => {
      const { statement, reason, strengths, usual } = laws[name];
      return { name, statement, reason, promises: [...strengths, 'none'], usualPromise: usual };
    }),
    regimes: regimeNames.map((name) => {
      const { description, provokes } = describeRegime(name);
      return { name, description, provokes };
    }),
  };
}
