import { RequestError } from '../../request-error.js';
import type {
  InstructionRequest,
  LaneInstruction,
  OperandForm,
  VisibleInstruction,
  WarpInstruction,
} from '../instructions/index.js';

/** Collects the unsupported features of a program, so that all of them are reported at once. */
export interface UnsupportedCollector {
  /**
   * @param line line of the text
   * @param what instruction, directive or register
   * @param needed the feature that it would need, or the reason why it is missing
   */
  readonly add: (line: number, what: string, needed: string) => void;
  /** Throws a RequestError that names everything collected, with its lines; does nothing if there is nothing. */
  readonly check: (file: string) => void;
}

/** Maximum number of lines of one feature that a message lists; the rest are counted. */
const mostLines = 6;

export function createUnsupportedCollector(): UnsupportedCollector {
  const found = new Map<string, number[]>();
  return {
    add: (line, what, needed) => {
      const key = `${what} (${needed})`;
      const lines = found.get(key);
      if (lines === undefined) found.set(key, [line]);
      else if (!lines.includes(line)) lines.push(line);
    },
    check: (file) => {
      if (found.size === 0) return;
      const things = [...found].map(([what, lines]) => {
        const more = lines.length > mostLines ? ` and ${lines.length - mostLines} more` : '';
        const word = lines.length === 1 ? 'line' : 'lines';
        return `${word} ${lines.slice(0, mostLines).join(', ')}${more}: ${what}`;
      });
      throw new RequestError(`${file}: not supported: ${things.join('; ')}`);
    },
  };
}

/** Finds a lane instruction by its name and the form of its operands; null where there is none. */
export type FindLaneInstruction = (
  opcode: string,
  modifiers: readonly string[],
  form?: OperandForm,
) => LaneInstruction | null;

/** Every instruction that a program may have, except those of control flow, which are the program's own. */
export interface InstructionTables {
  readonly lane: FindLaneInstruction;
  readonly warp: readonly WarpInstruction[];
  readonly visible: readonly VisibleInstruction[];
}

/** A row that an instruction belongs to. */
type FoundRow =
  | { readonly kind: 'warp'; readonly row: WarpInstruction }
  | { readonly kind: 'visible'; readonly row: VisibleInstruction };

/** Finds the row with the longest name that an instruction begins with. */
export type FindRow = (
  instruction: Pick<InstructionRequest, 'opcode' | 'modifiers'>,
) => FoundRow | null;

/** Indexes the rows of warp and visible instructions by their names. */
export function createRowFinder({ warp, visible }: InstructionTables): FindRow {
  const rows = new Map<string, FoundRow>();
  for (const row of warp) rows.set(row.name, { kind: 'warp', row });
  for (const row of visible) rows.set(row.name, { kind: 'visible', row });
  return ({ opcode, modifiers }) => {
    for (let count = modifiers.length; count >= 0; count--) {
      const row = rows.get([opcode, ...modifiers.slice(0, count)].join('.'));
      if (row !== undefined) return row;
    }
    return null;
  };
}
