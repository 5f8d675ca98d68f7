import './theme/tokens.css';
import './theme/base.css';
import './theme/theme.svelte';
import { mount } from 'svelte';
import App from './shell/App.svelte';

const target = document.getElementById('app');
if (target) mount(App, { target });
