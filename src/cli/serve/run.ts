import { createInterface } from 'node:readline';
import { type Command, CommanderError } from 'commander';
import { printable } from '../../io/index.js';
import { WorkingMemories } from '../../../oracles/index.js';
import { createHelperThread, type LastingMeans } from '../../jobs/index.js';
import { RequestError } from '../../request-error.js';

/** A request, as a line of standard input. */
interface ServeRequest {
  readonly id: unknown;
  readonly args: readonly string[];
}

/** The answer to a request, as a line of standard output. */
interface ServeAnswer {
  readonly id: unknown;
  /** The exit status that the command would have ended with. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const wrongRequest = 2;

/** Creates a command line whose parser calls `stop` instead of ending the process, and whose audits use the lasting resources. */
type CreateProgram = (stop: (error: CommanderError) => never, lasting: LastingMeans) => Command;

/** Called by a request's parser instead of ending the process. */
function stopRequest(error: CommanderError): never {
  throw error;
}

/** Captures a command's writes to a stream, from now on until it is restored. */
function captureStream(stream: NodeJS.WriteStream) {
  const pieces: Buffer[] = [];
  const write = (
    chunk: Uint8Array | string,
    encoding?: BufferEncoding | ((error?: Error | null) => void),
    done?: (error?: Error | null) => void,
  ): boolean => {
    const isEncoded = typeof chunk === 'string' && typeof encoding === 'string';
    pieces.push(isEncoded ? Buffer.from(chunk, encoding) : Buffer.from(chunk as string));
    (typeof encoding === 'function' ? encoding : done)?.();
    return true;
  };
  Object.defineProperty(stream, 'write', { configurable: true, value: write });
  return {
    text: () => Buffer.concat(pieces).toString(),
    // What is there without it is the prototype's.
    restore: () => Reflect.deleteProperty(stream, 'write'),
  };
}

/** The line of an error, as the command line prints it. */
function lineOf(error: unknown): string {
  if (error instanceof RequestError) return `flashproof: ${printable(error.message)}\n`;
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `flashproof: internal error, which is a bug in flashproof: ${what}\n`;
}

/**
 * The words of a request's command line.
 * @throws RequestError for anything else
 */
function wordsOf(args: unknown): readonly string[] {
  if (!Array.isArray(args) || !args.every((word) => typeof word === 'string'))
    throw new RequestError(
      'a request has no args; give the words of a command line as a list of texts',
    );
  if (args.length === 0 || args[0] === 'serve')
    throw new RequestError('a request names no command to carry out; give one, as audit');
  return args;
}

/** @throws RequestError for a line that is no JSON object */
function parseLine(line: string): { readonly id?: unknown; readonly args?: unknown } {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new RequestError('a request is no JSON object; write one a line');
}

/** Carries out a command line. */
async function carryOut({ id, args }: ServeRequest, program: Command): Promise<ServeAnswer> {
  const [stdout, stderr] = [captureStream(process.stdout), captureStream(process.stderr)];
  const answer = (status: number, complaint = '') => ({
    id,
    status,
    stdout: stdout.text(),
    stderr: stderr.text() + complaint,
  });
  process.exitCode = undefined;
  try {
    await program.parseAsync([...args], { from: 'user' });
    return answer(Number(process.exitCode ?? 0));
  } catch (error) {
    // Commander has written what is to be said; help and version are successes.
    if (error instanceof CommanderError) return answer(error.exitCode === 0 ? 0 : wrongRequest);
    return answer(wrongRequest, lineOf(error));
  } finally {
    stdout.restore();
    stderr.restore();
    process.exitCode = undefined;
  }
}

/** The answer to any line. */
async function answerTo(line: string, program: Command): Promise<ServeAnswer> {
  let id: unknown = null;
  try {
    const request = parseLine(line);
    ({ id = null } = request);
    return await carryOut({ id, args: wordsOf(request.args) }, program);
  } catch (error) {
    return { id, status: wrongRequest, stdout: '', stderr: lineOf(error) };
  }
}

/** Runs `flashproof serve`: answers requests until standard input ends. Returns the exit status. */
export async function runServe(createProgram: CreateProgram): Promise<number> {
  const helper = createHelperThread();
  // One parser for all requests: Commander forgets the options of the last one on each parse.
  const program = createProgram(stopRequest, { helper, memories: new WorkingMemories() });
  try {
    for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
      if (line.trim() === '') continue;
      const answer = await answerTo(line, program);
      process.stdout.write(`${JSON.stringify(answer)}\n`);
      void helper?.prepare();
    }
  } finally {
    await helper?.close();
  }
  return 0;
}
