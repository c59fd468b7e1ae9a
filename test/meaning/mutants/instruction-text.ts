import type { PtxInstruction, PtxModule, Statement } from '../../../src/ptx/syntax/index.js';

/** An instruction of a text, in parts that can be changed and joined again. */
export interface InstructionText {
  readonly line: number;
  /** Where it begins and ends in the text, with its semicolon. */
  readonly from: number;
  readonly to: number;
  /** `@%p1 ` or nothing. */
  readonly guard: string;
  /** `fma.rn.f32`. */
  readonly mnemonic: string;
  readonly operands: readonly string[];
}

/** All instructions of some statements, with those of their blocks. */
function* instructionsOf(statements: readonly Statement[]): Generator<PtxInstruction> {
  for (const statement of statements) {
    if (statement.kind === 'block') yield* instructionsOf(statement.statements);
    if (statement.kind === 'instruction') yield statement;
  }
}

/** Splits a list at its commas outside of brackets. */
function splitOperands(list: string): readonly string[] {
  let depth = 0;
  const operands = [''];
  for (const letter of list) {
    if ('([{'.includes(letter)) depth++;
    if (')]}'.includes(letter)) depth--;
    if (letter === ',' && depth === 0) operands.push('');
    else operands[operands.length - 1] += letter;
  }
  return operands.map((operand) => operand.trim()).filter((operand) => operand !== '');
}

/** The instructions of a module in the order of its text. */
export function instructionTexts(text: string, module: PtxModule): readonly InstructionText[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return module.functions.flatMap(({ body }) =>
    [...instructionsOf(body ?? [])].flatMap(({ place: { line, column } }) => {
      const from = starts[line - 1] + column - 1;
      const to = text.indexOf(';', from) + 1;
      const parts = /^(@!?[%\w$]+\s+)?([\w.:]+)\s*([^]*);$/.exec(text.slice(from, to));
      if (parts === null || parts[3].includes('//')) return [];
      const [, guard = '', mnemonic, list] = parts;
      return [{ line, from, to, guard, mnemonic, operands: splitOperands(list) }];
    }),
  );
}

/** An instruction as text. */
export function joined({
  guard,
  mnemonic,
  operands,
}: Pick<InstructionText, 'guard' | 'mnemonic' | 'operands'>): string {
  return `${guard}${mnemonic} ${operands.join(', ')};`;
}
