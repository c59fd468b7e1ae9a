import { spawnSync } from 'node:child_process';
import process from 'node:process';

/**
 * Ends with one line that says why nothing can be built.
 * @param {string} reason what is wrong and how to mend it
 */
export function refuse(reason) {
  process.stderr.write(`release: ${reason}\n`);
  process.exit(2);
}

/**
 * Says on standard error what begins now, and when: a release takes minutes, and its result is on standard output.
 * @param {string} what it does, as "packs the npm tarball"
 */
export function tell(what) {
  process.stderr.write(`release: ${Math.floor(performance.now() / 1000)} s, ${what}\n`);
}

/**
 * What a command prints; refuses with its last lines where it fails.
 * @param {string} folder where it runs
 * @param {readonly string[]} words the command and its arguments
 * @param {Readonly<Record<string, string>>} environment variables beside those of this process
 */
export function execute(folder, [command, ...words], environment = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, words, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
    maxBuffer: 2 ** 28,
  });
  if (error !== undefined) refuse(`${command} cannot be started: ${error.message}`);
  if (status !== 0) {
    const said = `${stdout}${stderr}`.trim().split('\n').slice(-8).join('\n  ');
    refuse(`${[command, ...words].join(' ')} fails with status ${status}:\n  ${said}`);
  }
  return stdout;
}
