import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const peakMemory = fileURLToPath(new URL('./peak-memory.js', import.meta.url));

/** Seconds from the start of a command of the command line to its end, as its user waits for it, and its peak memory in bytes. */
export async function measureCommand(
  commandLine: string,
  words: readonly string[],
): Promise<readonly [seconds: number, peakBytes: number]> {
  const start = performance.now();
  const program = [process.execPath, ['--import', peakMemory, commandLine, ...words]] as const;
  // An audit that finds a kernel wrong ends with status 1, and is measured like any other.
  const { stderr } = await promisify(execFile)(...program).catch((error: unknown) => {
    if (error instanceof Error && 'stderr' in error && 'code' in error && error.code === 1)
      return { stderr: String(error.stderr) };
    throw error;
  });
  const seconds = (performance.now() - start) / 1000;
  return [seconds, Number(/peak memory: (\d+)/.exec(stderr)![1])];
}
