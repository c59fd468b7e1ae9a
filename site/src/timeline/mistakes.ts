import { create } from '../element.js';
import { groupMistakes } from './mistake-groups.js';

/**
 * Offers the mistakes that have all words of a search, in groups; the one that was chosen stays, if it is among them.
 * @returns how many are offered
 */
export function offerMistakes(
  select: HTMLSelectElement,
  ids: readonly string[],
  search: string,
): number {
  const words = search.toLowerCase().split(/\s+/);
  const fitting = ids.filter((id) => words.every((word) => id.toLowerCase().includes(word)));
  const chosen = select.value;
  const groups = [...groupMistakes(fitting)].map(([kind, members]) =>
    create(
      'optgroup',
      { label: `${kind} (${members.length})` },
      ...members.map((id) =>
        create(
          'option',
          { value: id },
          id.startsWith(`${kind}: `) ? id.slice(kind.length + 2) : id,
        ),
      ),
    ),
  );
  select.replaceChildren(create('option', { value: '' }, 'none'), ...groups);
  select.value = fitting.includes(chosen) ? chosen : '';
  return fitting.length;
}
