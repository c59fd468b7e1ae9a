import {
  createMutantJudge,
  type JudgedMutant,
  type MutantJudge,
  programMutants,
} from '../../../src/ptx/mutants/index.js';
import { prepareLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { type BodyOptions, launchBody } from '../run/run-body.js';

/** What came of all mutants of a kernel's body. */
export interface JudgedBody {
  readonly base: MutantJudge['base'];
  readonly judged: readonly JudgedMutant[];
  /** The verdicts by `instruction: change`, where the instruction is the text of its line up to the first space. */
  readonly verdicts: Readonly<Record<string, string>>;
}

/** Judges the mutants of the body of a kernel (`launchBody`). */
export async function judgeBody(body: string, options: BodyOptions = {}): Promise<JudgedBody> {
  const { ptx, launch } = await launchBody(body, options);
  const prepared = prepareLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
  const { base, judge } = createMutantJudge(prepared);
  const judged = programMutants(prepared.program).map(judge);
  const lines = ptx.split('\n');
  // Instructions of the text are told apart by the comment that ends their lines.
  const nameOf = (line: number) => lines[line - 1].split('// ')[1] ?? `line ${line}`;
  const verdicts = Object.fromEntries(
    judged.map(({ line, change, verdict }) => {
      const told = change.replace(/line (\d+): .*/, (_, other) => nameOf(Number(other)));
      return [`${nameOf(line)}: ${told}`, verdict];
    }),
  );
  return { base, judged, verdicts };
}
