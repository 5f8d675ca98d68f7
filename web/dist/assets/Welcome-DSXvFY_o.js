import{$ as e,An as t,Bn as n,En as r,Fn as i,Gn as ee,In as a,Jn as o,Kn as s,Ln as c,P as te,Rn as l,Vn as u,Yn as d,_ as f,gn as p,hn as m,i as ne,ot as re,t as ie,tt as h,vn as g,xn as _}from"./ui-BzZJezJM.js";import{i as ae,n as oe,t as se}from"./client-C-9G4Q1F.js";import{n as ce,t as v}from"./terminal-BN7Y1uzG.js";import{t as y}from"./index-jC9MFXIB.js";var b=[[`path`,{d:`M12 15v5s3.03-.55 4-2c1.08-1.62 0-5 0-5`}],[`path`,{d:`M4.5 16.5c-1.5 1.26-2 5-2 5s3.74-.5 5-2c.71-.84.7-2.13-.09-2.91a2.18 2.18 0 0 0-2.91-.09`}],[`path`,{d:`M9 12a22 22 0 0 1 2-3.95A12.88 12.88 0 0 1 22 2c0 2.72-.78 7.5-6 11a22.4 22.4 0 0 1-4 2z`}],[`path`,{d:`M9 12H4s.55-3.03 2-4c1.62-1.08 5 .05 5 .05`}]],x=[[`path`,{d:`M12.586 2.586A2 2 0 0 0 11.172 2H4a2 2 0 0 0-2 2v7.172a2 2 0 0 0 .586 1.414l8.704 8.704a2.426 2.426 0 0 0 3.42 0l6.58-6.58a2.426 2.426 0 0 0 0-3.42z`}],[`circle`,{cx:`7.5`,cy:`7.5`,r:`.5`,fill:`currentColor`}]],le={title:`Welcome to ERA`,text:`Say what a job needs, when it may run and what it is worth. ERA answers at once with a price and a promised slot.`,three:`Three things to try`,quoteTitle:`See a price`,quoteText:`Open a new job, change its size or deadline, and watch the price follow. Nothing is booked until you confirm.`,quoteDo:`Open a new job`,runTitle:`Run a first training`,runText:`A small training on one core for a minute: its log, its loss curve and its bill, live.`,runDo:`Start the training`,runDone:`The training is handed in.`,cliTitle:`Use the terminal too`,cliText:`Everything here is also a command. In any folder with code:`,later:`You find this page again under Account.`,how:`How it works`,howBid:`A job with a value is a bid: you get a slot with a guaranteed start, or a refusal with counter-offers.`,howQueue:`A job without one waits in a queue for half the price, and fills the holes that promises leave.`,howFlex:`The wider your window, the less it costs: waiting is worth money.`},ue={title:`欢迎使用 ERA`,text:`说明作业需要什么、何时可以运行、值多少信用点。ERA 会立即给出价格和承诺的时段。`,three:`先试三件事`,quoteTitle:`看看价格`,quoteText:`打开“新建作业”，改变规模或截止时间，价格随之变化。确认之前不会预订任何资源。`,quoteDo:`打开新建作业`,runTitle:`运行第一次训练`,runText:`一个核、一分钟的小训练：日志、损失曲线和账单实时可见。`,runDo:`开始训练`,runDone:`训练已提交。`,cliTitle:`也可以用终端`,cliText:`这里的一切都有对应命令。在任意代码目录中：`,later:`可随时在“账户”下再次打开本页。`,how:`工作方式`,howBid:`带有价值的作业是一次出价：您会得到有保证的开始时间，或附带还价的拒绝。`,howQueue:`不带价值的作业以半价排队，填补承诺之间的空隙。`,howFlex:`时间窗口越宽，价格越低：等待是有价值的。`},de={name:`first-training`,work:{command:[`python3`,`-c`,`# Logistic regression by gradient descent on points that a seed draws: two clouds, one line
# between them. Nothing but the standard library.
import json, math, os, random

random.seed(7)
points = []
for _ in range(2000):
    label = random.random() < 0.5
    shift = 1.5 if label else -1.5
    points.append((random.gauss(shift, 1.2), random.gauss(-shift / 2, 1.2), float(label)))

w1 = w2 = bias = 0.0
steps, rate = 60, 0.5
for step in range(1, steps + 1):
    g1 = g2 = gb = loss = 0.0
    for x, y, label in points:
        p = 1 / (1 + math.exp(-(w1 * x + w2 * y + bias)))
        loss -= math.log(p if label else 1 - p)
        g1 += (p - label) * x
        g2 += (p - label) * y
        gb += p - label
    n = len(points)
    w1, w2, bias = w1 - rate * g1 / n, w2 - rate * g2 / n, bias - rate * gb / n
    print(f"era: metric loss={loss / n:.6f} step={step}", flush=True)

right = sum((w1 * x + w2 * y + bias > 0) == (label > 0.5) for x, y, label in points)
outputs = os.environ.get("ERA_OUTPUTS", "outputs")
os.makedirs(outputs, exist_ok=True)
with open(os.path.join(outputs, "model.json"), "w") as file:
    json.dump({"weights": [w1, w2], "bias": bias, "accuracy": right / len(points)}, file)
print(f"accuracy {right / len(points):.3f}")
`]},ask:{resources:{cpu:`1`,memory:`256Mi`},duration_s:60},priority:0},fe=g(`<!> <h2> </h2> <ol class="grid svelte-fd3jzz"><li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <!></li></ol> <section class="how svelte-fd3jzz"><h2> </h2> <ul class="stack svelte-fd3jzz"><li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li></ul></section> <p class="quiet small"> </p>`,1);function S(g,S){s(S,!0);let C=re(le,ue),w=u(!1);async function pe(){n(w,!0);try{let e={"idempotency-key":ae()},t=await oe(se.POST(`/api/v1/jobs`,{body:de,params:{header:e}}));ne(C.runDone),y.go(`/jobs/${t.job}`)}catch(e){ie(e)}finally{n(w,!1)}}var T=fe(),E=a(T);f(E,{get title(){return C.title},get text(){return C.text}});var D=l(E,2),O=c(D,!0),k=l(D,2),A=i(k),j=i(A),M=i(j);h(M,{get icon(){return x},size:20}),d(j);var N=l(j,2),P=c(N,!0),F=l(N,2),I=c(F,!0),L=l(F,2),R=i(L);e(R,{kind:`primary`,href:`/jobs/new`,children:(e,n)=>{o();var r=_();t(()=>m(r,C.quoteDo)),p(e,r)},$$slots:{default:!0}}),d(L),d(A);var z=l(A,2),B=i(z),me=i(B);h(me,{get icon(){return b},size:20}),d(B);var V=l(B,2),he=c(V,!0),H=l(V,2),ge=c(H,!0),U=l(H,2),_e=i(U);e(_e,{get busy(){return r(w)},onclick:pe,get icon(){return ce},children:(e,n)=>{o();var r=_();t(()=>m(r,C.runDo)),p(e,r)},$$slots:{default:!0}}),d(U),d(z);var W=l(z,2),G=i(W),ve=i(G);h(ve,{get icon(){return v},size:20}),d(G);var K=l(G,2),ye=c(K,!0),q=l(K,2),be=c(q,!0),J=l(q,2);te(J,{text:`era run --cpu 2 --time 10m -- python train.py`}),d(W),d(k);var Y=l(k,2),X=i(Y),xe=c(X,!0),Z=l(X,2),Q=i(Z),Se=c(Q,!0),$=l(Q,2),Ce=c($,!0),we=l($,2),Te=c(we,!0);d(Z),d(Y);var Ee=l(Y,2),De=c(Ee,!0);t(()=>{m(O,C.three),m(P,C.quoteTitle),m(I,C.quoteText),m(he,C.runTitle),m(ge,C.runText),m(ye,C.cliTitle),m(be,C.cliText),m(xe,C.how),m(Se,C.howBid),m(Ce,C.howQueue),m(Te,C.howFlex),m(De,C.later)}),p(g,T),ee()}export{S as default};