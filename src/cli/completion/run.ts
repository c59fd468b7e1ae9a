import type { Command } from 'commander';
import type { Shell } from './options.js';
import { bashCompletion } from './bash.js';
import { fishCompletion } from './fish.js';
import { completedCommands, programOptions } from './completed-commands.js';
import { zshCompletion } from './zsh.js';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** The script that completes a program's commands, options, names and files in a shell. */
export function renderCompletion(program: Command, shell: Shell): string {
  return scripts[shell](completedCommands(program), programOptions(program));
}
