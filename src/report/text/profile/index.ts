export { renderProfile } from './render-profile.js';
export { profileSketch } from './render-profile.js';
