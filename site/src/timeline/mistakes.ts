import type { TimelineMutant } from '../../../src/browser/index.js';
import { create } from '../element.js';
import { groupMistakes } from './mistake-groups.js';

/**
 * Offers the mistakes that have all words of a search in their id or in what goes wrong, which is what they are called by,
 * in groups; the one that was chosen stays, if it is among them.
 * @returns how many are offered
 */
export function offerMistakes(
  select: HTMLSelectElement,
  mistakes: readonly TimelineMutant[],
  search: string,
): number {
  const words = search.toLowerCase().split(/\s+/);
  const fitting = mistakes.filter(({ id, description }) => {
    const text = `${id} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const chosen = select.value;
  const groups = [...groupMistakes(fitting)].map(([kind, members]) =>
    create(
      'optgroup',
      { label: `${kind} (${members.length})` },
      ...members.map(({ id, description }) => create('option', { value: id }, description)),
    ),
  );
  select.replaceChildren(create('option', { value: '' }, 'none'), ...groups);
  select.value = fitting.some(({ id }) => id === chosen) ? chosen : '';
  return fitting.length;
}
