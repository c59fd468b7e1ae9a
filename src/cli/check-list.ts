import { describeRegime, lawIds, laws, regimeNames } from '../../properties/index.js';
import { wrapText } from '../report/index.js';

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
