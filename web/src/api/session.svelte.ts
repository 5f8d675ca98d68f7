/**
 * Who is signed in. The session's secret is a cookie that scripts cannot read; the second secret
 * of every change comes with the login and again whenever the page asks who it is.
 */
import { api, call, setCsrf, whenSignedOut } from './client';
import { live } from './live.svelte';
import { asProblem, type ProblemError } from './problem';
import type { Me } from './types';

class Session {
  /** `undefined` while it is not known, `null` for nobody. */
  me = $state<Me | null | undefined>(undefined);
  /** Why it is not known. */
  problem = $state.raw<ProblemError | undefined>(undefined);

  /** Asks the server who this is. */
  async load(): Promise<void> {
    try {
      this.enter(await call(api.GET('/api/v1/sessions')));
      this.problem = undefined;
    } catch (thrown) {
      const problem = asProblem(thrown);
      if (problem.status === 401) this.leave();
      else this.problem = problem;
    }
  }

  async signIn(user: string, password: string): Promise<void> {
    const body = { user, password, cookie: true };
    const logged = await call(api.POST('/api/v1/sessions', { body }));
    setCsrf(logged.csrf ?? undefined);
    this.enter(logged.me);
  }

  async signOut(): Promise<void> {
    try {
      await call(api.DELETE('/api/v1/sessions'));
    } finally {
      this.leave();
    }
  }

  /** Takes the place of a one-time password, or of any other. */
  async changePassword(old: string, fresh: string): Promise<void> {
    await call(api.PUT('/api/v1/password', { body: { old, new: fresh } }));
    // The session of a one-time password is good for this alone.
    if (this.me) await this.signIn(this.me.name, fresh);
  }

  get administers(): boolean {
    return this.me?.role === 'administrator';
  }

  get headsGroup(): boolean {
    return this.me?.role === 'administrator' || this.me?.role === 'group_administrator';
  }

  leave(): void {
    setCsrf(undefined);
    live.stop();
    this.me = null;
  }

  private enter(me: Me): void {
    if (me.csrf) setCsrf(me.csrf);
    this.me = me;
    if (!me.must_change_password) live.start();
  }
}

export const session = new Session();
whenSignedOut(() => session.leave());
