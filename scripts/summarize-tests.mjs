/**
 * Prints `N passed, N failed` on a line of its own, from the results that vitest's JSON reporter wrote
 * to the file named. A test file that fails outside its tests (its set-up, say) counts as one failure,
 * and so does a run that vitest calls unsuccessful although no test failed. Exits with 1 when the
 * results cannot be read or anything failed.
 */
import { readFileSync } from 'node:fs';

const [, , path] = process.argv;

/** Failed tests of one file; 1 for a file that failed without a failing test. */
function failuresOf({ status, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === 'failed').length;
  return failed === 0 && status === 'failed' ? 1 : failed;
}

try {
  const results = JSON.parse(readFileSync(path, 'utf8'));
  const failures = results.testResults.reduce((sum, file) => sum + failuresOf(file), 0);
  const failed = failures === 0 && !results.success ? 1 : failures;
  console.log(`${results.numPassedTests} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} catch (error) {
  console.error(`${path}: no test results (${error.message})`);
  process.exitCode = 1;
}
