import { hashOfText, type NameInput } from '../../meaning/domains/index.js';
import type { TracedInput } from '../../meaning/record/index.js';
import type { PlacedInput, PlacedRole } from '../launch/contract-places.js';
import { isOfKeys, type RowContents } from './row-contents.js';

/** Names of the elements of a launch's inputs. */
export interface InputNames {
  readonly name: NameInput;
  /** For a reader. */
  readonly describe: (input: number, element: number) => string;
}

/** Names by tensor and number of the element. */
export function namesByTensor(inputs: readonly TracedInput[]): InputNames {
  const names = inputs.map(({ tensor }) => hashOfText(tensor));
  return {
    name: (input, element) => [...names[input], element],
    describe: (input, element) => `${inputs[input].tensor}[${element}]`,
  };
}

/** A row of an input. */
interface NamedRow {
  readonly words: readonly [number, number];
  readonly text: string;
}

/** The rows of an input in the order of the problem: [batch, heads, rows]. */
function namedRows(role: PlacedRole, contents: RowContents): readonly NamedRow[] {
  return contents.rowsOf(role).map(({ head, position, contents: bits }) => ({
    // Where a query lies says nothing about what it sees; of keys the place decides their order.
    words: hashOfText(
      isOfKeys(role) ? `${role} ${head} ${position} ${bits}` : `${role} ${head} ${bits}`,
    ),
    text: `${role}, head ${head}, row ${position}`,
  }));
}

/**
 * Names by what attention is asked: elements of Q, and of what a backward is given for each query, have the head, the contents of their
 * row and the column for a name, those of K and V also the place of the row in its sequence. So the same row of another batch, among other neighbours or with other strides
 * has the same names. What is no element of these is named by its tensor; an element of several is one of the first.
 */
export function namesByContents(
  inputs: readonly TracedInput[],
  placed: readonly PlacedInput[],
  contents: RowContents,
): InputNames {
  const others = namesByTensor(inputs);
  const rows: NamedRow[] = [];
  const known = inputs.map(({ tensor }) => {
    const elements = new Map<number, readonly [row: number, column: number]>();
    for (const { role, places } of placed.filter((one) => one.tensor === tensor)) {
      const first = rows.length;
      const ofRole = namedRows(role, contents);
      rows.push(...ofRole);
      const columns = places.length / Math.max(1, ofRole.length);
      places.forEach((place, i) => {
        if (!elements.has(place))
          elements.set(place, [first + Math.floor(i / columns), i % columns]);
      });
    }
    return elements;
  });
  return {
    name: (input, element) => {
      const place = known[input].get(element);
      return place === undefined
        ? others.name(input, element)
        : [...rows[place[0]].words, place[1]];
    },
    describe: (input, element) => {
      const place = known[input].get(element);
      return place === undefined
        ? others.describe(input, element)
        : `${rows[place[0]].text}, column ${place[1]}`;
    },
  };
}
