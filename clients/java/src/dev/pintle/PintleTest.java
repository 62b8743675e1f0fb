package dev.pintle;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests with a workspace each: methods may have parameters of the types {@link Workspace}, {@link Server}, and of clients. */
@Documented
@Inherited
@Target({ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(PintleExtension.class)
public @interface PintleTest {
    /** Manifests that each workspace has: files and directories. */
    String[] apply() default {};

    /** Flags of {@code pintle serve}. */
    String[] flags() default {};

    /** The tests that share a workspace. */
    Scope scope() default Scope.TEST;
}
