import type {
  InstructionRequest,
  LaneInstruction,
  OperandForm,
  VisibleInstruction,
  WarpInstruction,
} from '../instructions/index.js';

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
export type FoundRow =
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
