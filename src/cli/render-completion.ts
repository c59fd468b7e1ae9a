import type { Command } from 'commander';
import type { Shell } from './completion.js';
import { bashCompletion } from './completion-bash.js';
import { fishCompletion } from './completion-fish.js';
import { completedCommands, programOptions } from './completion-words.js';
import { zshCompletion } from './completion-zsh.js';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** The script that completes a program's commands, options, names and files in a shell. */
export function renderCompletion(program: Command, shell: Shell): string {
  return scripts[shell](completedCommands(program), programOptions(program));
}
